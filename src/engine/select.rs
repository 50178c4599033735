//! The order among nodes with equal totals.
//!
//! Upstream leaves it open (it depends on goroutine timing). Ours is a fixed 64-bit hash of (seed, node name), so that
//! the same view gives the same choice whatever happened before, and a pod's replacement prefers the same node as the pod
//! did. Another seed gives another order.

/// SplitMix64's finaliser (Steele, Lea, Flood 2014) over the FNV-1a hash of the name and the seed. Its values are part of
/// the protocol: never swap it for a hash whose values may change.
pub fn tie_order(seed: u64, name_hash: u64) -> u64 {
    let mut z = name_hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::view::name_hash;

    #[test]
    fn the_order_is_fixed_for_ever() {
        // Changing these values changes which of two equal nodes every client gets.
        assert_eq!(tie_order(0, name_hash("n1")), 0xf8e4_6110_455c_6e53);
        assert_eq!(tie_order(7, name_hash("n1")), 0xf639_7349_08aa_a745);
    }
}
