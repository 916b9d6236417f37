/**
 * Metrics of pod CIDRs, under upstream's names (`cirdset` is upstream's spelling) but without its label. The usage is
 * that of the fullest set.
 */
export const CIDR_ALLOCATIONS = 'node_ipam_controller_cidrset_cidrs_allocations_total';
export const CIDR_RELEASES = 'node_ipam_controller_cidrset_cidrs_releases_total';
/** Share of the blocks in use, from 0 to 1. */
export const CIDR_USAGE = 'node_ipam_controller_cidrset_usage_cidrs';
export const CIDR_TRIES = 'node_ipam_controller_cidrset_allocation_tries_per_request';
/** Blocks of the smallest set. */
export const CIDR_BLOCKS = 'node_ipam_controller_cirdset_max_cidrs';
