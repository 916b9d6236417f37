/**
 * The API through the whole local mode: reads, lists of a large fleet, patches, and the delay of a watch after a write.
 * Also the units of each, counted between local mode and its engine.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { tendStreamRecords } from '../aws-local/engine/stream-records.ts';
import { PRICES } from '../shared/cost/prices.ts';
import { startEngine } from '../test/support/engine.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { clientOf } from './heartbeat.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';
import { watchNodes } from './node-watch.ts';

const FLEET_SIZES = [1_000, 10_000];
/** The most samples of lists and pages, and of changes that a watch shows. */
const LIST_SAMPLES_MAX = 5;
const WATCH_SAMPLES_MAX = 20;
const CONFIGURATION_OBJECTS_MAX = 1_000;
const PAGE_LIMIT = 500;
const PAGES_MAX = 100;
const CREATE_AT_ONCE = 16;
const ANSWER_MAX_MS = 60_000;
const WATCH_SETTLE_MS = 2_000;
const WATCH_GIGABYTES = 0.125;

export const api: Benchmark = {
  name: 'api',
  about: 'get, list, scrape, patch and watch of a large fleet: times and units',
  usage: '[--nodes 1000,10000] [--samples 200] [--quiet-seconds 10 of a watch]',
  smallest: ['--nodes', '10', '--samples', '1', '--quiet-seconds', '1'],
  run: measureApi,
};

const NODES_MAX = 20_000;

async function measureApi(report: Report, options: readonly string[]): Promise<void> {
  const text = { type: 'string' } as const;
  const { nodes, ...values } = readOptions(options, { nodes: text, samples: text, 'quiet-seconds': text });
  const samples = wholeNumber('samples', values.samples, { least: 1, most: 10_000, otherwise: 200 });
  const listSamples = Math.min(LIST_SAMPLES_MAX, samples);
  const quietBounds = { least: 1, most: 3_600, otherwise: 10 };
  const quietSeconds = wholeNumber('quiet-seconds', values['quiet-seconds'], quietBounds);
  const sizes = wholeNumbers('nodes', nodes, { least: 10, most: NODES_MAX, otherwise: FLEET_SIZES });
  const folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  const dbPath = join(folder, 'engine.sqlite');
  const engine = await startEngine({ dbPath });
  const proxy = await startCountingProxy(engine.endpoint);
  const local = await startLocalHost({ controllers: false, dynamodbEndpoint: proxy.endpoint });
  // Local mode tends an engine of its own; this one is ours.
  tendStreamRecords(dbPath, Date.now());
  const reader = createReader(local);
  try {
    let size = 0;
    for (const target of sizes) {
      await fill(local, size, target);
      size = target;
      await measure(report, proxy, { what: 'get node', nodes: size, samples }, () =>
        reader.read(`/api/v1/nodes/${nameOf(7)}`),
      );
      await measure(report, proxy, { what: 'list, pages of 500', nodes: size, samples: listSamples }, () =>
        listPages(reader),
      );
      await measure(report, proxy, { what: 'list, no limit', nodes: size, samples: listSamples }, () =>
        listPages(reader, 0),
      );
      for (const path of ['/metrics', '/metrics?scope=controller']) {
        await measure(report, proxy, { what: `GET ${path}`, nodes: size, samples: listSamples }, () =>
          reader.readText(path),
        );
      }
    }
    const objects = Math.min(CONFIGURATION_OBJECTS_MAX, size);
    await measureConfiguration(report, local, proxy, reader, { objects, samples: listSamples });
    let value = 0;
    await measure(report, proxy, { what: 'patch a label', nodes: size, samples }, () => {
      value += 1;
      return reader.patch(`/api/v1/nodes/${nameOf(value % size)}`, { metadata: { labels: { value: `v${value}` } } });
    });
    const watchSamples = Math.min(WATCH_SAMPLES_MAX, samples, size);
    await measureWatch(report, local, reader, proxy, { samples: watchSamples, quietSeconds });
  } finally {
    reader.close();
    await local.stop();
    await proxy.close();
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What charts consist of, with 1,000 characters each. */
const CONFIGURATION = ['configmaps', 'secrets'];

async function measureConfiguration(
  report: Report,
  local: LocalHost,
  proxy: CountingProxy,
  reader: Reader,
  { objects, samples }: { readonly objects: number; readonly samples: number },
): Promise<void> {
  const client = clientOf(local, CREATE_AT_ONCE);
  for (const resource of CONFIGURATION) {
    const path = `/api/v1/namespaces/default/${resource}`;
    const data = { key: Buffer.from('value '.repeat(125)).toString('base64') };
    await inParallel(objects, async (index) => {
      const answer = await client.send({ method: 'POST', path, body: { metadata: { name: nameOf(index) }, data } });
      if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    });
    const what = `page of ${objects} ${resource}`;
    await measure(report, proxy, { what, nodes: 0, samples }, () => reader.read(`${path}?limit=${objects}`));
  }
  client.close();
}

async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: CREATE_AT_ONCE }, worker));
}

const nameOf = (index: number): string => `bench-${String(index).padStart(5, '0')}`;

async function fill(local: LocalHost, from: number, to: number): Promise<void> {
  const client = clientOf(local, CREATE_AT_ONCE);
  await inParallel(to - from, async (index) => {
    const name = nameOf(from + index);
    const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
      type,
      status: type === 'Ready' ? 'True' : 'False',
      reason: 'Bench',
      message: 'as a kubelet says it, in so many words',
    }));
    const body = { metadata: { name, labels: { zone: `z${index % 3}` } }, status: { conditions } };
    const lease = { metadata: { name }, spec: { holderIdentity: name, leaseDurationSeconds: 40 } };
    for (const [path, object] of [
      ['/api/v1/nodes', body],
      ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', lease],
    ] as const) {
      const answer = await client.send({ method: 'POST', path, body: object });
      if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(`${name}: ${JSON.stringify(answer)}`);
    }
  });
  client.close();
}

interface Read {
  readonly bytes: number;
  readonly body: { readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string } };
}

interface Reader {
  read(path: string): Promise<Read>;
  readText(path: string): Promise<Pick<Read, 'bytes'>>;
  patch(path: string, body: unknown): Promise<Read>;
  close(): void;
}

const readOf = (answer: Buffer): Read => ({
  bytes: answer.length,
  body: JSON.parse(answer.toString('utf8')) as Read['body'],
});

function createReader(local: LocalHost): Reader {
  const agent = new Agent({ keepAlive: true, ca: local.ca });
  const headers = { authorization: `Bearer ${local.token}` };
  const once = (method: string, path: string, body?: unknown): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const sent = httpsRequest(
        new URL(path, local.url),
        {
          agent,
          method,
          timeout: ANSWER_MAX_MS,
          headers: { ...headers, ...(text === undefined ? {} : { 'content-type': 'application/merge-patch+json' }) },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('error', reject);
          answer.on('end', () => {
            const whole = Buffer.concat(parts);
            if (answer.statusCode !== 200) reject(new Error(`${method} ${path}: ${answer.statusCode}`));
            else resolve(whole);
          });
        },
      );
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer in ${ANSWER_MAX_MS} ms`)));
      sent.on('error', reject);
      sent.end(text);
    });
  return {
    read: async (path) => readOf(await once('GET', path)),
    readText: async (path) => ({ bytes: (await once('GET', path)).length }),
    patch: async (path, body) => readOf(await once('PATCH', path, body)),
    close: () => agent.destroy(),
  };
}

/** Reads a whole list, by pages or by the limit of one answer. */
async function listPages(reader: Reader, limit = PAGE_LIMIT): Promise<Read> {
  let bytes = 0;
  let token = '';
  for (let pages = 1; pages <= PAGES_MAX; pages += 1) {
    const query = new URLSearchParams({
      ...(limit === 0 ? {} : { limit: String(limit) }),
      ...(token === '' ? {} : { continue: token }),
    });
    const page = await reader.read(`/api/v1/nodes?${query}`);
    bytes += page.bytes;
    token = page.body.metadata?.continue ?? '';
    if (token === '') return { bytes, body: page.body };
  }
  throw new Error('a list without an end');
}

async function measure(
  report: Report,
  proxy: CountingProxy,
  of: { readonly what: string; readonly nodes: number; readonly samples: number },
  run: () => Promise<Pick<Read, 'bytes'>>,
): Promise<void> {
  await run();
  proxy.take();
  const times: number[] = [];
  let bytes = 0;
  for (let sample = 0; sample < of.samples; sample += 1) {
    const startedMs = performance.now();
    bytes += (await run()).bytes;
    times.push(performance.now() - startedMs);
  }
  const { readUnits, writeUnits } = proxy.take();
  report({
    ...of,
    p50Ms: rounded(percentile(times, 0.5)),
    p99Ms: rounded(percentile(times, 0.99)),
    bytesEach: Math.round(bytes / of.samples),
    readUnitsEach: rounded(readUnits / of.samples),
    writeUnitsEach: rounded(writeUnits / of.samples),
  });
}

async function measureWatch(
  report: Report,
  local: LocalHost,
  reader: Reader,
  proxy: CountingProxy,
  { samples, quietSeconds }: { readonly samples: number; readonly quietSeconds: number },
): Promise<void> {
  const seen = new Map<string, () => void>();
  const watch = await watchNodes(local, ({ metadata }) => seen.get(metadata.labels?.['watched'] ?? '')?.());
  const times: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const value = `w${sample}`;
    const shown = new Promise<'shown'>((resolve) => seen.set(value, () => resolve('shown')));
    await reader.patch(`/api/v1/nodes/${nameOf(sample)}`, { metadata: { labels: { watched: value } } });
    const startedMs = performance.now();
    const outcome = await Promise.race([shown, pause(ANSWER_MAX_MS, 'late', { ref: false })]);
    if (outcome === 'late') throw new Error(`the watch did not show ${value} in ${ANSWER_MAX_MS} ms`);
    times.push(performance.now() - startedMs);
  }
  // What the changes still cause.
  await pause(WATCH_SETTLE_MS);
  proxy.take();
  await pause(quietSeconds * 1_000);
  const { readUnits, writeUnits } = proxy.take();
  watch.stop();
  const perHour = 3_600 / quietSeconds;
  const lambdaDollars = WATCH_GIGABYTES * 3_600 * PRICES.lambdaGigabyteSecond;
  report({
    what: 'watch, from acknowledged write to event',
    samples,
    p50Ms: rounded(percentile(times, 0.5)),
    maxMs: rounded(Math.max(...times)),
    readUnitsPerQuietHour: Math.round(readUnits * perHour),
    writeUnitsPerQuietHour: Math.round(writeUnits * perHour),
    dollarsPerWatcherHour: rounded(
      lambdaDollars + readUnits * perHour * PRICES.readUnit + writeUnits * perHour * PRICES.writeUnit,
    ),
  });
}
