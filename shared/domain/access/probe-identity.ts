/**
 * Who sends node-monitor's own beats, and for which Lease. It is no node: its user name has a colon where no node's has one,
 * and no Node or NodeIdentity may take the Lease's name.
 */
export const PROBE_USER = 'system:nodekeeper:probe';
/** May make and renew the Lease of the probes, and nothing else. No access entry can give it. */
export const PROBE_GROUP = 'nodekeeper:probes';
export const PROBE_LEASE = 'nodekeeper-probe';
