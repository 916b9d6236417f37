/**
 * Names a status that a machine reports to the hub of its site, beside the write to the cluster (docs/hub.md). A hub
 * shows it while the cluster cannot be reached, and answers 202. It answers 409 while the cluster can be reached.
 */
export const SITE_STATUS_HEADER = 'nodekeeper-site-status';
