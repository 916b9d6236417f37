/**
 * What updates of the agent cost: the API over the memory store, in virtual time. Counted are requests and units. At
 * rest a node reports once per period. In a release each node needs a minute for its update, and waits as long as the
 * answer says. A stopped release waits for a node that failed. The billed duration of a request is assumed.
 */
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { apiManifest } from '../shared/api/manifest.ts';
import { PRICE_LIST } from '../shared/domain/cost/prices.ts';
import { apiInMemory, MERGE } from '../test/support/api-in-memory.ts';
import { randomFrom } from '../test/support/seeded.ts';
import { type Benchmark, rounded } from './benchmark.ts';

const SIZES = [10, 100, 1_000];
const PERIOD_SECONDS = 1_800;
/** A report is within the last quarter of the period (agent/app/updates/self-update.ts). */
const MEAN_PERIOD_SECONDS = PERIOD_SECONDS * 0.875;
const MONTH_SECONDS = 730 * 3_600;
const UPDATE_SECONDS = 60;
/** Billed duration of a report. Seconds. */
const REPORT_SECONDS = 0.012;
const REPORTS_MAX = 200_000;

const artifact = { url: 'https://f.example/a', sha256: 'a'.repeat(64), signature: `${'A'.repeat(86)}==` };

export const agentUpdates: Benchmark = {
  name: 'agent-updates',
  about:
    'requests, units and dollars of updates of the agent: at rest, for a release, and while one is stopped, by nodes',
  async run(report) {
    for (const nodes of SIZES) report({ ...(await rollOut(nodes)), ...(await stoppedHour(nodes)) });
  },
};

/** A release of all nodes, and the requests and units that are counted. */
async function cluster(nodes: number, maxUnavailable: number | string) {
  const counted = { requests: 0, writeUnits: 0, readUnits: 0 };
  const items = memoryItemStore({
    onConsumed({ writeUnits, readUnits }) {
      counted.writeUnits += writeUnits;
      counted.readUnits += readUnits;
    },
  });
  const api = apiInMemory({ items });
  const reset = (): void => void Object.assign(counted, { requests: 0, writeUnits: 0, readUnits: 0 });
  for (let index = 0; index < nodes; index += 1) {
    const metadata = { name: `n${index}`, annotations: { 'nodekeeper.dev/agent-version': '1.0.0' } };
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await api.send('POST', '/api/v1/nodes', { body: { kind: 'Node', metadata, status } });
  }
  const spec = { version: '2.0.0', artifacts: [artifact], maxUnavailable };
  const metadata = { name: 'agent' };
  await api.send('POST', '/apis/nodekeeper.dev/v1alpha1/agentreleases', {
    body: { kind: 'AgentRelease', metadata, spec },
  });
  const ask = async (name: string, version: string, more: object = {}) => {
    counted.requests += 1;
    const path = `/apis/nodekeeper.dev/v1alpha1/nodeupdates/${name}`;
    const body = { version, architecture: 'amd64', ...more };
    return (await api.send('PUT', path, { body, contentType: 'application/json' })).body;
  };

  return { api, ask, counted, reset };
}

async function rollOut(nodes: number) {
  const { api, ask, counted, reset } = await cluster(nodes, '10%');
  const next = randomFrom(1);
  reset();
  const due = Array.from({ length: nodes }, (_, index) => ({
    name: `n${index}`,
    version: '1.0.0',
    atSeconds: next() * PERIOD_SECONDS,
  }));
  let nowSeconds = 0;
  for (let reports = 0; reports < REPORTS_MAX && due.length > 0; reports += 1) {
    due.sort((one, other) => one.atSeconds - other.atSeconds);
    const node = due[0];
    if (node === undefined) break;
    api.advance(Math.max(0, node.atSeconds - nowSeconds) * 1_000);
    nowSeconds = node.atSeconds;
    if (node.version === '2.0.0') {
      const before = { ...counted };
      const annotations = { 'nodekeeper.dev/agent-version': '2.0.0' };
      const body = { metadata: { annotations } };
      await api.send('PATCH', `/api/v1/nodes/${node.name}`, { contentType: MERGE, body });
      // The agent's status post costs this with and without updates.
      Object.assign(counted, before);
    }
    const { action, waitSeconds = 0 } = await ask(node.name, node.version);
    if (node.version === '2.0.0') due.shift();
    else if (action === 'update') Object.assign(node, { version: '2.0.0', atSeconds: nowSeconds + UPDATE_SECONDS });
    else node.atSeconds = nowSeconds + waitSeconds;
  }
  const release = { ...counted };

  reset();
  for (let index = 0; index < 10; index += 1) await ask(`n${index}`, '2.0.0');
  const reportsPerMonth = MONTH_SECONDS / MEAN_PERIOD_SECONDS;
  return {
    nodes,
    reportsPerNodeMonth: Math.round(reportsPerMonth),
    readUnitsPerReport: rounded(counted.readUnits / 10),
    writeUnitsPerReport: rounded(counted.writeUnits / 10),
    dollarsPerNodeMonth: rounded((dollarsOf(counted) / 10) * reportsPerMonth, 4),
    releaseHours: rounded(nowSeconds / 3_600),
    releaseRequests: release.requests,
    releaseWriteUnits: rounded(release.writeUnits),
    releaseReadUnits: rounded(release.readUnits),
    releaseDollars: rounded(dollarsOf(release), 4),
  };
}

async function stoppedHour(nodes: number) {
  const { api, ask, counted, reset } = await cluster(nodes, 1);
  await ask('n0', '1.0.0');
  await ask('n0', '1.0.0', { failed: { sha256: artifact.sha256, message: 'no accepted heartbeats in 120 s' } });
  const next = randomFrom(1);
  const due = Array.from({ length: nodes - 1 }, (_, index) => ({ name: `n${index + 1}`, atSeconds: next() * 3_600 }));
  reset();
  let nowSeconds = 0;
  for (let reports = 0; reports < REPORTS_MAX; reports += 1) {
    due.sort((one, other) => one.atSeconds - other.atSeconds);
    const node = due[0];
    if (node === undefined || node.atSeconds >= 3_600) break;
    api.advance((node.atSeconds - nowSeconds) * 1_000);
    nowSeconds = node.atSeconds;
    const { waitSeconds } = await ask(node.name, '1.0.0');
    node.atSeconds += waitSeconds;
  }
  return {
    stoppedRequestsPerHour: counted.requests,
    stoppedWriteUnitsPerHour: rounded(counted.writeUnits),
    stoppedReadUnitsPerHour: rounded(counted.readUnits),
    stoppedDollarsPerHour: rounded(dollarsOf(counted), 4),
  };
}

function dollarsOf({ requests, writeUnits, readUnits }: { requests: number; writeUnits: number; readUnits: number }) {
  const { prices } = PRICE_LIST;
  const gigabyteSeconds = requests * REPORT_SECONDS * (apiManifest.memoryMegabytes / 1_024);
  return (
    requests * (prices.httpApiRequest.dollars + prices.lambdaRequest.dollars) +
    gigabyteSeconds * prices.lambdaGigabyteSecond.dollars +
    writeUnits * prices.writeUnit.dollars +
    readUnits * prices.readUnit.dollars
  );
}
