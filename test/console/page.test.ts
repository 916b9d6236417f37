/** The page of the console in a real browser, over the API in memory. */
import { text } from 'node:stream/consumers';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { openConsole } from '../../cli/console.ts';
import { type Console, serveConsole } from '../../console/server/serve-console.ts';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { type GateReason, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { type SilenceHour, silenceBucketOf } from '../../shared/fleet/silences/silence-hour.ts';
import { silenceHourWrite } from '../../shared/fleet/silences/silence-store.ts';
import { type DisruptionRecord, NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { exchange } from '../../shared/host/http-exchange.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import {
  flawsOf,
  isBrowserInstalled,
  NO_BROWSER,
  type OpenedPage,
  openPage,
  seenWithin,
  startBrowser,
} from '../support/browser.ts';
import { readKubeconfig } from '../support/kubeconfig.ts';
import { type MemoryApi, startMemoryApi } from '../support/memory-api.ts';
import { silenceHour } from '../support/silence-hour.ts';
import { type StandInApi, type StandInOptions, startStandInApi } from '../support/stand-in-api.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const WAIT = { timeout: 30_000 };
const HOUR_MS = 3_600_000;
/** Each story looks at two variants of its page, or at four with KEEP_SCREENSHOTS. */
vi.setConfig({ testTimeout: 180_000 });
let browser: Browser;
let items: ItemStore;
let api: MemoryApi;
let client: ApiClient;
let ending: (() => Promise<void>)[];

beforeAll(async () => {
  if (isBrowserInstalled) browser = await startBrowser();
});
afterAll(() => browser?.close());

beforeEach(async (context) => {
  if (!isBrowserInstalled) context.skip(NO_BROWSER);
  ending = [];
  items = memoryItemStore();
  api = await startMemoryApi(items);
  const { url, ca, token } = readKubeconfig(api.kubeconfig);
  client = createApiClient({ url, ca: ca!, token, connectionsMax: 4, timeoutMs: 30_000 });
});
afterEach(async () => {
  for (const end of (ending ?? []).reverse()) await end();
  client?.close();
  await api?.stop();
});

async function send(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
  const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  const answer = await client.send({ method, path, contentType, ...(body === undefined ? {} : { body }) });
  if (answer.kind !== 'answered' || answer.status >= 300)
    throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  return answer.body;
}

async function createNodes(zone: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await send('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `edge-${zone}-${index}`, labels: { 'topology.kubernetes.io/zone': zone } },
      status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] },
    });
  }
}

const setReady = (node: string, status: string): Promise<unknown> =>
  send('PATCH', `/api/v1/nodes/${node}/status`, { status: { conditions: [{ type: 'Ready', status }] } });

async function open(context = 'test'): Promise<OpenedPage> {
  const running = await openConsole({ port: 0, values: { kubeconfig: api.kubeconfig, context }, environment: {} });
  return await show(running);
}

async function show(running: Console): Promise<OpenedPage> {
  const opened = await openPage(browser, running.address);
  ending.push(async () => {
    await opened.page.close();
    await running.stop();
  });
  return opened;
}

/** A finished tick of node-monitor. */
async function tick(reasons: readonly GateReason[] = [], disruption: DisruptionRecord = NO_DISRUPTION): Promise<void> {
  const nowMs = Date.now();
  const { state } = await fleetStore(items).read();
  const slot = (state.slot ?? 0) + 1;
  const claim = await fleetStore(items).claim({
    claimId: `tick-${slot}`,
    slot,
    periodSeconds: 5,
    seenFence: state.fence,
    nowMs,
    gate: { ...UNTRIED_GATE, reasons, sinceMs: nowMs, lastTickAtMs: nowMs },
    disruption,
    nodes: 2,
    finished: true,
  });
  expect(claim).toEqual({ kind: 'claimed' });
}

/** Waits for words while ticks go on: without a tick the gate closes. */
async function seenWithTicks(page: Page, words: string, disruption?: DisruptionRecord): Promise<void> {
  const look = async (): Promise<number> => {
    await tick([], disruption);
    return await page.getByText(words).count();
  };
  await expect.poll(look, { ...WAIT, interval: 1_000 }).toBeGreaterThan(0);
}

const zone = (page: Page, name: string) => page.getByRole('article', { name: `Zone ${name}` });
const seen = (page: Page, words: string) => seenWithin(page, words, WAIT.timeout);
async function visit(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
}

it('removes the token from the address and shows the zones, with cells that the keyboard reaches', async () => {
  await createNodes('a', 4);
  await createNodes('b', 2);
  await tick();
  const { page, errors } = await open();
  await seen(page, '6 of 6');
  expect(page.url()).not.toContain('token');
  await page.getByRole('listbox', { name: 'nodes of zone a' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('End');
  expect(await zone(page, 'a').getByRole('option').textContent()).toBe('edge-a-3: Ready');
  expect(await flawsOf(page, 'zones')).toEqual([]);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Node edge-a-3' }).waitFor(WAIT);
  await seen(page, 'KubeletReady');
  expect(await flawsOf(page, 'node')).toEqual([]);
  await page.reload();
  await page.getByRole('heading', { name: 'Node edge-a-3' }).waitFor(WAIT);
  expect(errors).toEqual([]);
});

it('shows a zone that fails and recovers, as it happens', async () => {
  await createNodes('a', 3);
  await tick();
  const { page, errors } = await open();
  await seen(page, '3 of 3');
  for (const node of ['edge-a-0', 'edge-a-1', 'edge-a-2']) await setReady(node, 'Unknown');
  await seen(page, '0 of 3');
  await seenWithTicks(page, '3 of 3 nodes silent for');
  expect(await flawsOf(page, 'zone-dark')).toEqual([]);
  for (const node of ['edge-a-0', 'edge-a-1', 'edge-a-2']) await setReady(node, 'True');
  await seen(page, '3 of 3');
  await seenWithTicks(page, 'All 3 nodes are Ready.');
  expect(await flawsOf(page, 'zone-returned')).toEqual([]);
  expect(errors).toEqual([]);
});

it('shows total disruption, and a rollout', async () => {
  await createNodes('a', 2);
  for (const node of ['edge-a-0', 'edge-a-1']) await setReady(node, 'Unknown');
  const total = { ...NO_DISRUPTION, total: true };
  await tick([], total);
  const labels = { app: 'web' };
  await send('POST', '/apis/apps/v1/namespaces/default/deployments', {
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  await send('PATCH', '/apis/apps/v1/namespaces/default/deployments/web/status', {
    status: { replicas: 3, readyReplicas: 2, updatedReplicas: 1 },
  });
  const { page, errors } = await open();
  await seen(page, 'no zone has a Ready node (2 nodes).');
  await seenWithTicks(page, 'No pod is evicted in total disruption.', total);
  await seen(page, ': 2 of 3 ready, 1 of 3 updated.');
  expect(await flawsOf(page, 'total-disruption')).toEqual([]);
  expect(errors).toEqual([]);
});

it('shows the closed gate with its reason, and that it is open again', async () => {
  await createNodes('a', 2);
  await tick(['failingPath']);
  const { page } = await open();
  await seen(page, 'our own heartbeats failed, or were sent too rarely. No node is newly marked, tainted or evicted.');
  expect(await flawsOf(page, 'gate-closed')).toEqual([]);
  await tick();
  await seen(page, 'Gate open');
});

it('shows evicted pods with what replaced them, and why a pod is pending', async () => {
  const pod = (name: string, nodeName: string | undefined) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d9f', uid: 'u1', controller: true }],
    },
    spec: { containers: [{ name: 'c', image: 'i' }], ...(nodeName === undefined ? {} : { nodeName }) },
  });
  await createNodes('a', 2);
  await send('POST', '/api/v1/namespaces/default/events', {
    metadata: { name: 'e1', namespace: 'default' },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web-5d9f-4xk2p' },
    reason: 'TaintManagerEviction',
    message: 'Marking for deletion Pod default/web-5d9f-4xk2p',
    firstTimestamp: new Date().toISOString(),
  });
  await send('POST', '/api/v1/namespaces/default/pods', pod('web-5d9f-9bbcd', 'edge-a-1'));
  await send('POST', '/api/v1/namespaces/default/pods', pod('web-5d9f-zzzzz', undefined));
  await send('PATCH', '/api/v1/namespaces/default/pods/web-5d9f-zzzzz/status', {
    status: {
      conditions: [
        { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/2 nodes are available' },
      ],
    },
  });
  const { page, errors } = await open();
  await page.getByRole('link', { name: 'Pods' }).click();
  const row = page.getByRole('row').filter({ hasText: 'web-5d9f-4xk2p' });
  await row.getByText('default/web-5d9f-9bbcd').waitFor(WAIT);
  await row.getByRole('link', { name: 'edge-a-1' }).waitFor(WAIT);
  await seen(page, '0/2 nodes are available');
  expect(await flawsOf(page, 'pods')).toEqual([]);
  expect(errors).toEqual([]);
});

it('disables the writes of a viewer, with the reason', async () => {
  await createNodes('a', 1);
  const { page } = await open('viewer');
  await seen(page, '1 of 1');
  await visit(page, '#/node/edge-a-0');
  await seen(page, 'Your user may not patch nodes.');
  expect(await page.getByRole('button', { name: 'Cordon' }).isDisabled()).toBe(true);
  expect(await page.getByRole('button', { name: 'Taint out-of-service…' }).isDisabled()).toBe(true);
  expect(await flawsOf(page, 'viewer')).toEqual([]);
});

it('cordons, and taints out-of-service only after the name was typed', async () => {
  await createNodes('a', 1);
  const { page, errors } = await open();
  await visit(page, '#/node/edge-a-0');
  await page.getByRole('button', { name: 'Cordon' }).click(WAIT);
  await page.getByRole('button', { name: 'Uncordon' }).waitFor(WAIT);
  await page.getByRole('button', { name: 'Taint out-of-service…' }).click();
  const confirm = page.getByRole('button', { name: 'Taint edge-a-0' });
  expect(await confirm.isDisabled()).toBe(true);
  expect(await flawsOf(page, 'confirmation')).toEqual([]);
  await page.getByLabel('Name of the node', { exact: true }).fill('edge-a-0');
  await confirm.click();
  await page.getByRole('cell', { name: 'node.kubernetes.io/out-of-service' }).waitFor(WAIT);
  const { spec } = (await send('GET', '/api/v1/nodes/edge-a-0')) as { spec: unknown };
  expect(spec).toMatchObject({
    unschedulable: true,
    taints: expect.arrayContaining([
      expect.objectContaining({ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }),
    ]),
  });
  expect(errors).toEqual([]);
});

it('shows planned silence with end and reason, profile and flapping', async () => {
  await createNodes('a', 4);
  await send('PATCH', '/api/v1/nodes/edge-a-1', {
    metadata: {
      annotations: {
        'nodekeeper.dev/planned-silence-until': new Date(Date.now() + 7_200_000).toISOString(),
        'nodekeeper.dev/planned-silence-reason': 'new disk',
      },
    },
  });
  await send('PATCH', '/api/v1/nodes/edge-a-2/status', {
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'Flapping', status: 'True', reason: 'MarkedRepeatedly', message: 'marked 3 times in 3600 s' },
      ],
    },
  });
  const { page, errors } = await open();
  await seen(page, '3 of 4, 1 in planned silence');
  await zone(page, 'a').getByText('Planned silence: 1 node').click();
  await zone(page, 'a').getByText('Flapping: 1 node').click();
  await zone(page, 'a').getByRole('cell', { name: 'new disk' }).waitFor(WAIT);
  await page.getByRole('listbox', { name: 'nodes of zone a' }).focus();
  await page.keyboard.press('ArrowRight');
  expect(await zone(page, 'a').getByRole('option').textContent()).toMatch(
    /^edge-a-1: Ready, planned silence until .*Z \(new disk\)$/,
  );
  expect(await flawsOf(page, 'planned-silence')).toEqual([]);
  await zone(page, 'a').getByRole('link', { name: 'edge-a-2' }).click();
  await seen(page, 'marked 3 times in 3600 s');
  await seen(page, 'Profile');
  expect(await flawsOf(page, 'flapping')).toEqual([]);
  expect(errors).toEqual([]);
});

it('announces a silence with its reason, and ends it', async () => {
  await createNodes('a', 1);
  const { page, errors } = await open();
  await visit(page, '#/node/edge-a-0');
  await page.getByRole('button', { name: 'Announce silence…' }).click(WAIT);
  await page.getByLabel('How long').selectOption('8 hours');
  await page.getByLabel('Reason').fill('new disk');
  expect(await flawsOf(page, 'announce')).toEqual([]);
  await page.getByRole('button', { name: 'Announce silence of edge-a-0' }).click();
  await seen(page, ': new disk');
  await page.getByRole('cell', { name: 'nodekeeper.dev/planned-silence' }).waitFor(WAIT);
  const { metadata } = (await send('GET', '/api/v1/nodes/edge-a-0')) as { metadata: { annotations: object } };
  expect(metadata.annotations).toMatchObject({ 'nodekeeper.dev/planned-silence-reason': 'new disk' });
  expect(await flawsOf(page, 'announced')).toEqual([]);
  await page.getByRole('button', { name: 'End planned silence' }).click();
  await page.getByRole('button', { name: 'Announce silence…' }).waitFor(WAIT);
  expect(errors).toEqual([]);
});

it('shows the advice on the grace period as a chart, and the last marks', async () => {
  const hours = 30 * 24;
  const firstMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - hours * HOUR_MS;
  for (let index = 0; index < hours; index += 1) {
    for (const profile of ['default', 'cell']) {
      const hour = silenceHour({ index, firstMs, profile, counts: silences(profile, index) });
      await items.write(silenceHourWrite(hour));
    }
  }
  await createNodes('a', 1);
  const { page, errors } = await open();
  await page.getByRole('link', { name: 'Detector' }).click();
  await seen(page, '20 s would have marked none of 300 live machines in 30 days');
  await seen(page, 'No node was marked in the last hour.');
  expect(await page.locator('.chart circle').count()).toBeGreaterThan(12);
  expect(await flawsOf(page, 'detector')).toEqual([]);
  expect(errors).toEqual([]);
});

/** Every day has one silence of 25 s in profile `cell`. */
const silences = (profile: string, index: number): SilenceHour['counts'] =>
  profile === 'cell' && index % 24 === 0 ? [[silenceBucketOf(25), 1]] : [];

it('says when its data is stale, and resumes the watch without another list', async () => {
  const standIn = await standInConsole(30);
  const { page } = standIn;
  await seen(page, '30 of 30');
  await expect.poll(() => standIn.api.watches(), WAIT).toBe(1);
  standIn.api.cutWatches();
  await seen(page, 'Nodes: no changes for');
  expect(await flawsOf(page, 'watch-lost')).toEqual([]);
  standIn.api.setReady(4, 'Unknown');
  standIn.api.restoreWatches();
  await expect.poll(() => standIn.api.watches(), WAIT).toBe(1);
  standIn.api.setReady(5, 'Unknown');
  await seen(page, '28 of 30');
  await expect.poll(() => page.getByText('no changes for').count(), WAIT).toBe(0);
  expect(standIn.api.lists()).toBe(1);
});

it('shows 5,000 nodes and their changes', async () => {
  const standIn = await standInConsole(5_000);
  const { page, errors } = standIn;
  await seen(page, '5000 of 5000');
  const cells = (): Promise<string> => page.evaluate(`document.querySelector('canvas').toDataURL()`);
  const before = await cells();
  for (let index = 0; index < 300; index += 3) standIn.api.setReady(index, index % 2 === 0 ? 'Unknown' : 'False');
  await seen(page, '4900 of 5000');
  const frames =
    'new Promise((done) => { let left = 5; const next = () => (left-- > 0 ? requestAnimationFrame(next) : done()); next(); })';
  await page.evaluate(frames);
  const changed = await cells();
  expect(changed).not.toBe(before);
  // Another size draws every cell again.
  await page.setViewportSize({ width: 1_000, height: 900 });
  await expect.poll(cells).not.toBe(changed);
  await page.setViewportSize({ width: 1_440, height: 900 });
  await expect.poll(cells).toBe(changed);
  expect(await flawsOf(page, 'nodes-5000')).toEqual([]);
  expect(errors).toEqual([]);
});

async function standInConsole(
  nodes: number,
  options: StandInOptions = {},
): Promise<OpenedPage & { readonly api: StandInApi }> {
  const standIn = await startStandInApi(nodes, options);
  ending.push(() => standIn.stop());
  const running = await serveConsole({
    access: { url: standIn.url, token: 'token' },
    renewAccess: () => ({ url: standIn.url, token: 'token' }),
    port: 0,
    cluster: 'test',
    explain: async () => [],
    advise: async () => ({ limitPer1000NodeDays: 1, profiles: [] }),
  });
  return { ...(await show(running)), api: standIn };
}

/** The cells of the rows of a grid, by the text of their first cell. */
async function gridRows(page: Page): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = (await page.evaluate(
    `[...document.querySelectorAll('.grid-body [role=row]')].map((row) => [...row.children].map((cell) => cell.innerText.trim()))`,
  )) as readonly (readonly string[])[];
  return new Map(rows.map((row) => [row[0]!, row]));
}

/** What kubectl prints: the table that the API sends to it. */
async function printed(path: string): Promise<readonly (readonly unknown[])[]> {
  const { url, ca, token } = readKubeconfig(api.kubeconfig);
  const answer = await exchange(new URL(`${url}${path}`), {
    method: 'GET',
    token,
    ca: ca!,
    headers: { accept: TABLE },
    quietMs: WAIT.timeout,
  });
  return (JSON.parse(await text(answer)) as { rows: { cells: unknown[] }[] }).rows.map(({ cells }) => cells);
}

it('lists nodes and pods with the words and numbers that kubectl prints', async () => {
  await createNodes('a', 3);
  await setReady('edge-a-1', 'Unknown');
  await send('PATCH', '/api/v1/nodes/edge-a-2', { spec: { unschedulable: true } });
  const container = { name: 'c', image: 'i', resources: { requests: { cpu: '250m', memory: '512Mi' } } };
  for (const [name, nodeName] of [
    ['one', 'edge-a-0'],
    ['two', 'edge-a-0'],
    ['three', 'edge-a-1'],
  ]) {
    await send('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name, namespace: 'default' },
      spec: { nodeName, containers: [container] },
    });
  }
  await send('PATCH', '/api/v1/namespaces/default/pods/two/status', {
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          name: 'c',
          image: 'i',
          imageID: '',
          ready: false,
          restartCount: 4,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
        },
      ],
    },
  });
  const labels = { app: 'web' };
  await send('POST', '/apis/apps/v1/namespaces/default/deployments', {
    metadata: { name: 'web', namespace: 'default' },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  });
  await send('PATCH', '/apis/apps/v1/namespaces/default/deployments/web/status', {
    status: { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2, unavailableReplicas: 1 },
  });
  const { page, errors } = await open();
  await page.getByRole('link', { name: 'Nodes', exact: true }).click();
  await expect.poll(async () => (await gridRows(page)).get('edge-a-0')?.[4], WAIT).toBe('2');
  const nodes = await gridRows(page);
  for (const [name, status, , , version] of await printed('/api/v1/nodes')) {
    const row = nodes.get(String(name))!;
    // Behind the status of kubectl, the page says why.
    expect([name, row[1]!.replace(/ \(.*/, ''), row[8]]).toEqual([name, status, version]);
  }
  expect(nodes.get('edge-a-0')?.[5]).toBe('0.5');
  expect([...nodes.keys()][0]).toBe('edge-a-1');
  expect(await flawsOf(page, 'nodes')).toEqual([]);

  await page.keyboard.press('/');
  await page.keyboard.type('status=ready');
  await expect.poll(async () => [...(await gridRows(page)).keys()], WAIT).toEqual(['edge-a-0']);
  expect(page.url()).toContain('q=status%3Dready');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Node edge-a-0' }).waitFor(WAIT);

  await page.keyboard.press(':');
  await page.keyboard.type('pods');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await gridRows(page)).size, WAIT).toBe(3);
  const pods = await gridRows(page);
  for (const [name, ready, status, restarts] of await printed('/api/v1/namespaces/default/pods')) {
    expect(pods.get(`default/${name}`)?.slice(0, 4)).toEqual([`default/${name}`, status, ready, String(restarts)]);
  }
  expect(await flawsOf(page, 'pod-list')).toEqual([]);
  await page.keyboard.press(':');
  await page.keyboard.type('workloads');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await gridRows(page)).size, WAIT).toBe(1);
  const [[name, ready] = []] = await printed('/apis/apps/v1/namespaces/default/deployments');
  expect((await gridRows(page)).get(`default/${name}`)?.[2]).toBe(ready);
  expect(ready).toBe('2/3');
  expect(await flawsOf(page, 'workloads')).toEqual([]);
  await page.keyboard.press(':');
  await page.keyboard.type('pods');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await gridRows(page)).size, WAIT).toBe(3);
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: /^Pod default\/(two|three|one)/ }).waitFor(WAIT);
  expect(errors).toEqual([]);
});

it('tries an action on several nodes before it runs', async () => {
  await createNodes('a', 3);
  const { page, errors } = await open();
  await visit(page, '#/nodes');
  await page.getByRole('checkbox', { name: 'Select edge-a-0' }).check(WAIT);
  await page.getByRole('checkbox', { name: 'Select edge-a-1' }).check();
  await page.getByRole('button', { name: 'Cordon…', exact: true }).click();
  await seen(page, 'edge-a-1: would be changed');
  const states = async () =>
    ((await send('GET', '/api/v1/nodes')) as { items: { spec: { unschedulable?: boolean } }[] }).items.map(
      ({ spec }) => spec.unschedulable === true,
    );
  expect(await states()).toEqual([false, false, false]);
  expect(await flawsOf(page, 'several')).toEqual([]);
  await page.getByRole('button', { name: 'Cordon 2 nodes' }).click();
  await seen(page, 'edge-a-1: changed');
  expect(await states()).toEqual([true, true, false]);
  expect(errors).toEqual([]);
});

it('opens a moment of the timeline: what was known and decided', async () => {
  await createNodes('a', 2);
  await tick(['failingPath']);
  const { page, errors } = await open();
  const slider = page.getByRole('slider');
  await seen(page, 'our own heartbeats failed, or were sent too rarely.');
  await slider.focus(WAIT);
  await page.keyboard.press('End');
  expect(await slider.getAttribute('aria-valuetext')).toContain('Safety gate: Gate closed');
  await page.keyboard.press('Enter');
  await page.getByRole('cell', { name: 'Gate closed' }).waitFor(WAIT);
  expect(await flawsOf(page, 'moment')).toEqual([]);
  await page.getByRole('button', { name: 'Close' }).click();
  expect(errors).toEqual([]);
});

it('shows 20,000 pods, one of them with its log, and what its pods request of a node', async () => {
  const { page, errors } = await standInConsole(100, { pods: 20_000 });
  await seen(page, '100 of 100');
  await visit(page, '#/pods');
  await seen(page, '20000 pods');
  expect((await gridRows(page)).size).toBeLessThan(80);
  expect((await gridRows(page)).get('default/pod-0')?.slice(1, 4)).toEqual(['CrashLoopBackOff', '0/1', '7']);
  await visit(page, '#/nodes?sort=-cpu');
  await expect.poll(async () => (await gridRows(page)).get('edge-a-0')?.slice(4, 6), WAIT).toEqual(['200', '20 of 4']);
  await visit(page, '#/pod/default/pod-1');
  await seen(page, 'container main');
  expect(await flawsOf(page, 'pod')).toEqual([]);
  expect(errors).toEqual([]);
});

it('says what one list refuses, and shows the rest; markup in a name is text', async () => {
  const { page, errors } = await standInConsole(3, {
    nodeName: (index) => `<img src=x onerror=alert(${index})>`,
    clockAheadMs: 605_000,
    refuse: (path) =>
      path === '/api/v1/pods' || path.endsWith('/leases')
        ? { status: 403, message: 'pods is forbidden: User "eve" cannot list resource "pods"' }
        : undefined,
  });
  await seen(page, '3 of 3');
  await seen(page, 'Pending pods: not permitted to your user.');
  await seen(page, 'The clock of this machine is 10m behind that of the cluster.');
  await seen(page, 'All 3 nodes are Ready.');
  expect(await page.getByRole('alert').getByText('No data').count()).toBe(0);
  await visit(page, '#/nodes');
  await expect.poll(async () => [...(await gridRows(page)).keys()][0], WAIT).toBe('<img src=x onerror=alert(0)>');
  await seen(page, 'Pods: pods is forbidden');
  expect(await page.locator('img').count()).toBe(0);
  expect(await flawsOf(page, 'forbidden')).toEqual([]);
  expect(errors).toEqual([]);
});

it('has one banner for the token of another cluster, and for an API that does not answer', async () => {
  let refusal: { status: number; message: string } | undefined;
  const { page } = await standInConsole(3, { refuse: () => refusal });
  await seen(page, '3 of 3');
  refusal = { status: 401, message: 'Unauthorized' };
  await seen(page, 'The API refuses the token of this console: it has expired, or is that of another cluster.');
  refusal = { status: 503, message: 'the store is not available' };
  for (const end of ending.splice(0, 1)) await end();
  await seen(page, 'No data from the API for');
  await seen(page, 'Last known: All 3 nodes are Ready.');
  expect(await page.locator('.banner').count()).toBe(1);
  expect(await page.evaluate(`getComputedStyle(document.querySelector('main')).filter`)).toBe('grayscale(1)');
  expect(await flawsOf(page, 'api-down')).toEqual([]);
  await visit(page, '#/decisions');
  await seen(page, 'The decisions are not known.');
  expect(await page.getByText('being read').count()).toBe(0);
});

it('lists the keys and explains its words, and keeps the filter of Decisions in the address', async () => {
  await createNodes('a', 2);
  const { page, errors } = await open();
  await seen(page, '2 of 2');
  await page.keyboard.press('?');
  const help = page.getByRole('dialog');
  await help.getByRole('cell', { name: 'jump to a node' }).waitFor(WAIT);
  await help.getByRole('cell', { name: 'Somebody announced that the node will be silent' }).waitFor(WAIT);
  expect(await flawsOf(page, 'keys')).toEqual([]);
  await page.keyboard.press('Escape');
  await expect.poll(() => help.count(), WAIT).toBe(0);
  await page.getByRole('button', { name: 'Keys and words' }).click();
  await page.getByRole('button', { name: 'Close' }).click();
  await expect.poll(() => help.count(), WAIT).toBe(0);
  await visit(page, '#/decisions');
  await page.getByLabel('About').selectOption('a node', WAIT);
  await page.getByLabel('Name', { exact: true }).fill('edge-a-1');
  await page.keyboard.press('Tab');
  await page.getByLabel('Time').selectOption('last hour');
  await expect.poll(() => page.url(), WAIT).toContain('#/decisions?about=node&name=edge-a-1&hours=1');
  await page.reload();
  await expect.poll(() => page.getByLabel('Name', { exact: true }).inputValue(), WAIT).toBe('edge-a-1');
  expect(await page.getByLabel('Time').inputValue()).toBe('1');
  expect(errors).toEqual([]);
});

it.each([
  ['#/decisions', 'Decisions', 'decisions'],
  ['#/cost', 'Cost', 'cost'],
])('shows %s', async (hash, heading, story) => {
  await createNodes('a', 2);
  const { page, errors } = await open();
  await seen(page, '2 of 2');
  await visit(page, hash);
  await page.getByRole('heading', { name: heading, exact: true }).waitFor(WAIT);
  expect(await flawsOf(page, story)).toEqual([]);
  expect(errors).toEqual([]);
});

it('estimates the cost with the intervals of profiles, and sends no request for them', async () => {
  const profile = { name: 'cell', nodeSelector: { matchLabels: { link: 'cell' } }, beatIntervalSeconds: 60 };
  const cellular = await startMemoryApi(items, { ...defaultPolicy, profiles: [profile] });
  ending.push(() => cellular.stop());
  const running = await openConsole({ port: 0, values: { kubeconfig: cellular.kubeconfig }, environment: {} });
  const { url, ca, token } = readKubeconfig(cellular.kubeconfig);
  const cellClient = createApiClient({ url, ca: ca!, token, connectionsMax: 1, timeoutMs: 30_000 });
  for (const [name, link] of Object.entries({ e1: 'cell', e2: 'cell', e3: 'cable' })) {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { link } } };
    await cellClient.send({ method: 'POST', path: '/api/v1/nodes', contentType: 'application/json', body });
  }
  cellClient.close();
  const { page, errors } = await show(running);
  await seen(page, '0 of 3');
  const requests: string[] = [];
  page.on('request', (request) => void requests.push(new URL(request.url()).pathname));
  await visit(page, '#/cost');
  const intervals = '2 every 60 s (profile cell), 1 every 10 s (profile default).';
  await seen(page, intervals);
  expect(requests.filter((path) => !/clusterstatuses|metrics|pods/.test(path))).toEqual([]);
  expect(errors).toEqual([]);
});

it('keeps a view that was opened while the token was exchanged', async () => {
  await createNodes('a', 1);
  const running = await openConsole({ port: 0, values: { kubeconfig: api.kubeconfig }, environment: {} });
  const { page } = await show({ ...running, address: 'about:blank' });
  let answer = (): void => {};
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/session', async (route) => {
    await held;
    await route.continue();
  });
  const asked = page.waitForRequest('**/session');
  await page.goto(running.address);
  await asked;
  expect(page.url()).not.toContain('token');
  await visit(page, '#/node/edge-a-0');
  answer();
  await page.getByRole('heading', { name: 'Node edge-a-0' }).waitFor(WAIT);
});

it('refuses an address without its token', async () => {
  const running = await openConsole({ port: 0, values: { kubeconfig: api.kubeconfig }, environment: {} });
  const { page } = await show({ ...running, address: new URL('/#token=wrong', running.address).href });
  await seen(page, 'This address is that of another console, or of one that has ended.');
  expect(await flawsOf(page, 'no-token')).toEqual([]);
});
