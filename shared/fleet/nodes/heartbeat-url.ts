/**
 * The second way of a heartbeat: the URL of function `heartbeat` itself (docs/decisions/0039). The integration of the
 * HTTP API adds the URL to each heartbeat in a header. The function puts it into its answer as an annotation of the
 * Lease. Agents learn it without a read.
 */

/** Header that the HTTP API sets; it overwrites one that a client sends. */
export const HEARTBEAT_URL_HEADER = 'x-nodekeeper-heartbeat-url';
/** Annotation in the answer to a heartbeat through the HTTP API. Never stored. */
export const HEARTBEAT_URL_ANNOTATION = 'nodekeeper.dev/heartbeat-url';
