/**
 * The identity of node-monitor's own beats, and their Lease. It cannot be confused with a node: its user name contains
 * a colon that no node's user name has, and no Node or NodeIdentity may have the name of the Lease.
 */
export const PROBE_USER = 'system:nodekeeper:probe';
/** May only create and renew the Lease of the probes. No access entry can assign this group. */
export const PROBE_GROUP = 'nodekeeper:probes';
export const PROBE_LEASE = 'nodekeeper-probe';
