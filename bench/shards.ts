/**
 * How often some partition of the table `health` gets more writes per second than DynamoDB serves, when the hashes of the
 * shards' keys decide which partition holds them. Each placement has another hash, because DynamoDB does not publish
 * its own. Heartbeats are spread evenly over their interval.
 */
import { expectedLoads } from '../cdk/lib/capacity.ts';
import { hashOfKey, PARTITION_WRITE_UNITS_PER_SECOND, WARM_DEFAULT } from '../local/dynamodb/partition-capacity.ts';
import { HEALTH_SHARD_COUNTS, type HealthShards } from '../shared/domain/health-shards.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { healthPartitionOf } from '../shared/store/layout.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';

const PLACEMENTS = 1_000;
const FLEETS = [10_000, 30_000, 100_000];
/** Warm write units per unit of load. */
const WARM_FACTORS = [1, 2];
const HASH_RANGE = 2 ** 32;

export const shards: Benchmark = {
  name: 'shards',
  about: 'chance that a partition of health gets more than 1,000 writes per second, with 32 and with 256 shards',
  async run(report) {
    for (const nodes of FLEETS) {
      const { writeUnits } = expectedLoads(nodes, defaultPolicy).health;
      for (const warmFactor of WARM_FACTORS) {
        const warm = Math.max(WARM_DEFAULT.writeUnitsPerSecond, writeUnits * warmFactor);
        const partitions = Math.ceil(warm / PARTITION_WRITE_UNITS_PER_SECOND);
        for (const count of HEALTH_SHARD_COUNTS) {
          const fullest = fullestPartitions(unitsByShard(nodes, writeUnits, count), partitions);
          const over = fullest.filter((units) => units > PARTITION_WRITE_UNITS_PER_SECOND).length;
          report({
            nodes,
            shards: count,
            warmFactor,
            partitions,
            meanUnits: rounded(writeUnits / partitions),
            fullestP50Units: rounded(percentile(fullest, 0.5)),
            fullestP99Units: rounded(percentile(fullest, 0.99)),
            overLimitPercent: rounded((100 * over) / PLACEMENTS),
          });
        }
      }
    }
  },
};

/** Write units per second by partition key, of names as EC2 assigns them. */
function unitsByShard(nodes: number, writeUnits: number, count: HealthShards): ReadonlyMap<string, number> {
  const units = new Map<string, number>();
  for (let index = 0; index < nodes; index += 1) {
    const name = `ip-10-${index >> 16}-${(index >> 8) & 255}-${index & 255}.eu-west-1.compute.internal`;
    const key = healthPartitionOf(name, count);
    units.set(key, (units.get(key) ?? 0) + writeUnits / nodes);
  }
  return units;
}

/** Units of the fullest partition in each placement. */
function fullestPartitions(unitsByKey: ReadonlyMap<string, number>, partitions: number): number[] {
  return Array.from({ length: PLACEMENTS }, (_, placement) => {
    const units = new Float64Array(partitions);
    for (const [key, keyUnits] of unitsByKey) {
      const partition = Math.floor((hashOfKey(`${placement}/${key}`) * partitions) / HASH_RANGE);
      units[partition]! += keyUnits;
    }
    return Math.max(...units);
  });
}
