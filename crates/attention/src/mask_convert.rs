//! Converts masks of other libraries. Each constructor names its source, since polarities differ.
//!
//! | from | true means | constructor |
//! |---|---|---|
//! | Headlight | may attend | [`Mask::allowed`], [`Mask::key_padding`] |
//! | PyTorch `scaled_dot_product_attention(attn_mask)`, Bool | may attend | [`Mask::from_torch_sdpa`] |
//! | PyTorch `nn.MultiheadAttention(attn_mask, key_padding_mask)`, Bool | may **not** attend | [`Mask::from_torch_multihead`], [`Mask::from_torch_key_padding`] |
//! | PyTorch, either, float | added to the scores | [`Mask::bias`] |
//! | Burn `MhaInput::mask_attn`, `mask_pad` | may **not** attend | [`Mask::from_burn_attn`], [`Mask::from_burn_pad`] |

use burn::tensor::{Bool, Tensor};

use crate::Mask;

impl Mask {
    /// The Bool `attn_mask` of PyTorch's `scaled_dot_product_attention`: true = may attend.
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let mask = Mask::from_torch_sdpa(Tensor::<2, Bool>::from_bool([[true, false]], &Device::flex()));
    /// assert_eq!([0, 1].map(|k| mask.allows(0, 0, 0, k, (1, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn from_torch_sdpa<const D: usize>(attn_mask: Tensor<D, Bool>) -> Self {
        Self::allowed(attn_mask)
    }

    /// The Bool `attn_mask` of PyTorch's `nn.MultiheadAttention`: true = may **not** attend.
    ///
    /// # Shapes
    /// - `attn_mask`: `[queries, keys]`, or `[batch, heads, queries, keys]` where PyTorch has
    ///   `[batch·heads, …]`
    ///
    /// ```
    /// use burn::tensor::{Bool, Device, Tensor};
    /// use headlight_attention::Mask;
    ///
    /// let future = Tensor::<2, Bool>::from_bool([[false, true], [false, false]], &Device::flex());
    /// let mask = Mask::from_torch_multihead(future);
    /// assert!(mask.allows(0, 0, 1, 0, (2, 2)) && !mask.allows(0, 0, 0, 1, (2, 2)));
    /// ```
    #[must_use]
    pub fn from_torch_multihead<const D: usize>(attn_mask: Tensor<D, Bool>) -> Self {
        Self::allowed(attn_mask.bool_not())
    }

    /// The `key_padding_mask` of PyTorch's `nn.MultiheadAttention`, `[batch, keys]`: true = ignore
    /// the key.
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let mask = Mask::from_torch_key_padding(Tensor::<2, Bool>::from_bool([[false, true]], &Device::flex()));
    /// assert_eq!([0, 1].map(|k| mask.allows(0, 0, 0, k, (1, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn from_torch_key_padding(key_padding_mask: Tensor<2, Bool>) -> Self {
        Self::key_padding(key_padding_mask.bool_not())
    }

    /// Burn's `mask_attn`, `[batch, queries, keys]`: true = may **not** attend.
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let mask = Mask::from_burn_attn(Tensor::<3, Bool>::from_bool([[[false, true]]], &Device::flex()));
    /// assert_eq!([0, 1].map(|k| mask.allows(0, 0, 0, k, (1, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn from_burn_attn(mask_attn: Tensor<3, Bool>) -> Self {
        Self::allowed(mask_attn.bool_not())
    }

    /// Burn's `mask_pad`, `[batch, keys]`: true = padding.
    ///
    /// ```
    /// # use burn::tensor::{Bool, Device, Tensor};
    /// # use headlight_attention::Mask;
    /// let mask = Mask::from_burn_pad(Tensor::<2, Bool>::from_bool([[false, true]], &Device::flex()));
    /// assert_eq!([0, 1].map(|k| mask.allows(0, 0, 0, k, (1, 2))), [true, false]);
    /// ```
    #[must_use]
    pub fn from_burn_pad(mask_pad: Tensor<2, Bool>) -> Self {
        Self::key_padding(mask_pad.bool_not())
    }
}
