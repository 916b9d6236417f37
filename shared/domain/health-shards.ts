/**
 * Shards of the health table: 100,000 heartbeats in 10 s are 39 writes per second and shard. A partition accepts 1,000
 * and holds several shards, so a shard must be a small part of that (docs/decisions/0024-health-shards.md).
 */
export const HEALTH_SHARDS = 256;

/** Shards in clusters of earlier versions, until their rows are moved. */
export const FORMER_HEALTH_SHARDS = 32;

export type HealthShards = typeof HEALTH_SHARDS | typeof FORMER_HEALTH_SHARDS;

export const HEALTH_SHARD_COUNTS: readonly HealthShards[] = [FORMER_HEALTH_SHARDS, HEALTH_SHARDS];
export const HEALTH_SHARDS_RULE = `must be one of ${HEALTH_SHARD_COUNTS.join(', ')}`;

export const otherHealthShards = (shards: HealthShards): HealthShards =>
  shards === HEALTH_SHARDS ? FORMER_HEALTH_SHARDS : HEALTH_SHARDS;

/** undefined for any other text. */
export const healthShardsFrom = (text: string): HealthShards | undefined =>
  HEALTH_SHARD_COUNTS.find((count) => String(count) === text);
