/**
 * What one process of node-monitor saw in one hour of one zone and profile: how long live machines were silent.
 *
 * A silence is the time between two signs of life of one node, by our receipt times. Only silences longer than one
 * heartbeat interval are counted. A silence that is longer than the grace period belongs to a machine that returned
 * after it was marked. After ten minutes of silence a machine counts as switched off: its return is not counted.
 */

/** Width of a bucket. Seconds. */
export const SILENCE_BUCKET_SECONDS = 2.5;
/** Buckets of that width: up to 120 s. One more bucket holds the longer silences. */
export const SILENCE_BUCKETS = 48;
/** A longer silence is not counted. Seconds. */
export const SILENCE_SECONDS_MAX = 600;

/** Bucket i holds silences over `i × 2.5` s, up to and including `(i + 1) × 2.5` s; bucket 48 the ones over 120 s. */
export const silenceBucketOf = (seconds: number): number =>
  Math.min(SILENCE_BUCKETS, Math.max(0, Math.ceil(seconds / SILENCE_BUCKET_SECONDS) - 1));

/** The longest silence that the bucket may hold. Seconds. */
export const bucketEndSeconds = (bucket: number): number =>
  bucket >= SILENCE_BUCKETS ? SILENCE_SECONDS_MAX : (bucket + 1) * SILENCE_BUCKET_SECONDS;

export interface SilenceHour {
  /** Start of the hour. Epoch milliseconds. */
  readonly hourStartMs: number;
  /** Zone key; '' for nodes without zone and region labels. */
  readonly zone: string;
  readonly profile: string;
  /** The first tick of this hour that the process claimed. A slot is claimed once, so no other process has it. */
  readonly slot: number;
  /** Time for which the process saw every tick of the hour, the gate open. Seconds. */
  readonly observedSeconds: number;
  /** Sum over the nodes that were not silent for a grace period. Seconds. */
  readonly nodeSeconds: number;
  /** The most such nodes at one tick. */
  readonly nodes: number;
  readonly beatIntervalSeconds: number;
  readonly graceSeconds: number;
  readonly periodSeconds: number;
  /** [bucket, silences], by bucket; empty buckets are absent. */
  readonly counts: readonly (readonly [number, number])[];
  /** Late nodes that were not remembered, because there were too many. */
  readonly uncounted: number;
}
