/**
 * npm run bench -- [NAME…]
 *
 * Runs the named benchmarks, or all, and prints their figures as JSON lines: {"bench": NAME, …figures}.
 */
import { availableParallelism, cpus } from 'node:os';
import { agentWire } from './agent-wire.ts';
import { api } from './api.ts';
import type { Benchmark } from './benchmark.ts';
import { bundles } from './bundles.ts';
import { cloudHistories } from './cloud-histories.ts';
import { detection } from './detection.ts';
import { ec2Calls } from './ec2-calls.ts';
import { heartbeat } from './heartbeat.ts';
import { identity } from './identity.ts';
import { massFailure } from './mass-failure.ts';
import { nodeHours } from './node-hours.ts';
import { quiet } from './quiet.ts';

const BENCHMARKS: readonly Benchmark[] = [
  bundles,
  heartbeat,
  agentWire,
  identity,
  quiet,
  api,
  detection,
  massFailure,
  nodeHours,
  cloudHistories,
  ec2Calls,
];

async function run(names: readonly string[]): Promise<number> {
  if (names.includes('--help')) {
    for (const { name, about } of BENCHMARKS) console.log(`${name}: ${about}`);
    return 0;
  }
  const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name));
  if (unknown.length > 0) {
    console.error(
      `no such benchmark: ${unknown.join(', ')}; there are ${BENCHMARKS.map(({ name }) => name).join(', ')}`,
    );
    return 2;
  }
  const print = (line: Record<string, unknown>): void => console.log(JSON.stringify(line));
  print({ bench: 'machine', node: process.version, cpu: cpus()[0]?.model, cores: availableParallelism() });
  let failed = 0;
  for (const benchmark of BENCHMARKS) {
    if (names.length > 0 && !names.includes(benchmark.name)) continue;
    try {
      await benchmark.run((figures) => print({ bench: benchmark.name, ...figures }));
    } catch (cause) {
      failed += 1;
      console.error(`${benchmark.name} could not be measured:`, cause);
    }
  }
  return failed === 0 ? 0 : 1;
}

process.exitCode = await run(process.argv.slice(2));
