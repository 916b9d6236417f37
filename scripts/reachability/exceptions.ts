/** Code that stays although no program reaches it. An entry that no longer applies fails `npm run reach`. */
import type { Exception } from './examine.ts';

const OBSERVED = 'benchmarks and end-to-end tests watch and end a running system by it';
const PACED = 'the simulation and benchmarks keep time themselves, and take single turns instead of a whole slot';
const TOGETHER = 'the simulation, scenarios and benchmarks run all controllers in one process; a function runs one';
const LAWS = 'tests of the laws run these histories';
const CLOSED = 'benchmarks and tests end connections by it; a Lambda is frozen with its connections open';

export const exceptions: readonly Exception[] = [
  { symbol: 'local/fleet/api-client.ts#ApiClient.pending', reason: OBSERVED },
  { symbol: 'local/fleet/api-client.ts#HttpApiClient.pending', reason: OBSERVED },
  { symbol: 'local/fleet/api-client.ts#createQueue.size', reason: OBSERVED },
  { symbol: 'local/runtime.ts#LocalSystem.counters', reason: OBSERVED },
  { symbol: 'local/runtime.ts#LocalSystem.endEnvironments', reason: OBSERVED },
  { symbol: 'local/runtime.ts#LocalSystem.kill', reason: OBSERVED },
  { symbol: 'local/runtime.ts#LocalCounters', reason: OBSERVED },
  { symbol: 'local/runtime.ts#FunctionReport', reason: OBSERVED },
  { symbol: 'local/runtime.ts#QueueReport', reason: OBSERVED },
  { symbol: 'local/runtime.ts#systemOf.counters', reason: OBSERVED },
  { symbol: 'local/runtime.ts#systemOf.endEnvironments', reason: OBSERVED },
  { symbol: 'local/runtime.ts#systemOf.kill', reason: OBSERVED },
  { symbol: 'simulation/cloud-histories.ts#POLLS_MAX', reason: LAWS },
  { symbol: 'simulation/cloud-histories.ts#PERIODS_AFTER_EVENT_MAX', reason: LAWS },
  { symbol: 'simulation/cloud-histories.ts#CloudHistory', reason: LAWS },
  { symbol: 'simulation/cloud-histories.ts#runCloudHistory', reason: LAWS },
  { symbol: 'simulation/faulty-story.ts#faultyStory', reason: LAWS },
  { symbol: 'shared/adapters/dynamodb/lean-updater.ts#leanUpdater.close', reason: CLOSED },
  { symbol: 'shared/adapters/aws-connection/post-client.ts#PostClient.close', reason: CLOSED },
  { symbol: 'shared/adapters/aws-connection/post-client.ts#postClient.close', reason: CLOSED },
  { symbol: 'shared/adapters/ec2/sdk-api.ts#sdkEc2Api.close', reason: CLOSED },
  { symbol: 'shared/controllers/evictor/reconcile.ts#runEvictor', reason: PACED },
  { symbol: 'shared/controllers/evictor/reconcile.ts#processQueuesBetweenTicks', reason: PACED },
  { symbol: 'shared/controllers/index.ts#FleetControllers', reason: TOGETHER },
  { symbol: 'shared/controllers/index.ts#fleetControllers', reason: TOGETHER },
  { symbol: 'shared/controllers/index.ts#TickReport', reason: TOGETHER },
  { symbol: 'shared/function-list.ts#TickingFunction', reason: TOGETHER },
  { symbol: 'shared/function-list.ts#tickingFunctions', reason: 'the simulation ticks these' },
  { symbol: 'shared/domain/cost/prices.ts#SECONDS_A_MONTH', reason: 'npm run cost computes the bill with it' },
  { symbol: 'shared/domain/cost/prices.ts#PriceListOutcome', reason: 'npm run cost reads a price list with it' },
  { symbol: 'shared/domain/cost/prices.ts#parsePriceList', reason: 'npm run cost reads a price list with it' },
  {
    symbol: 'scripts/mutants/compiler.ts#Compiler.getCurrentDirectory',
    reason: 'the TypeScript compiler calls it',
  },
];
