/**
 * Clients of watches behind function URLs that hold small chunks, as reports of AWS's differ. With each behaviour the
 * first watch measures which padding delivers, and later ones use it.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { KubeConfig, Watch } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHUNK_HOLDS, type ChunkHold } from '../../aws-local/http/held-chunks.ts';
import { type LocalSystem, startLocal } from '../../aws-local/runtime.ts';
import { type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import { findKubectls, type Kubectl, runKubectl, startKubectl } from '../support/kubectl.ts';
import { until } from '../support/until.ts';

const PYTHON_CLIENT = fileURLToPath(new URL('../fixtures/python/watch.py', import.meta.url));
/** Generous: a client that waits for the next change waits for ever. Milliseconds. */
const WITHIN_MS = 30_000;
const NODES = '/api/v1/nodes';
const MERGE = 'application/merge-patch+json';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

const newest = findKubectls()
  .toSorted((one, other) => one.minor - other.minor)
  .at(-1) as Kubectl;

describe.each(Object.keys(CHUNK_HOLDS) as ChunkHold[])('behind a front that holds: %s', (chunkHold) => {
  let system: LocalSystem;
  let client: ApiClient;

  beforeAll(async () => {
    system = await startLocal({ chunkHold, controllers: false, print: () => {} });
    const { url, caPem: ca, adminToken: token } = system;
    client = createApiClient({ url, ca, token, connectionsMax: 4, timeoutMs: 30_000 });
    await send('POST', NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } });
    const labels = { app: 'web' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const spec = { replicas: 1, selector: { matchLabels: labels }, template };
    await send('POST', DEPLOYMENTS, { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec });
    // Measures.
    await run('get nodes -w --request-timeout=1s');
    await until(async () => (await paddingBytes()) !== undefined, { withinMs: 60_000, what: 'a measured form' });
  }, 120_000);

  afterAll(async () => {
    client?.close();
    await system?.stop();
  });

  async function send(method: 'GET' | 'PATCH' | 'POST', path: string, body?: object) {
    const answer = await client.send({ method, path, body, ...(method === 'PATCH' && { contentType: MERGE }) });
    if (answer.kind === 'failed') throw new Error(`${method} ${path}`, { cause: answer.cause });
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
    return answer.body as Record<string, never>;
  }

  const run = (args: string) => runKubectl(newest, args.split(' '), { kubeconfig: system.kubeconfigPath });
  const start = (args: string) => startKubectl(newest, args.split(' '), { kubeconfig: system.kubeconfigPath });
  const label = (seen: string) => send('PATCH', `${NODES}/a`, { metadata: { labels: { seen } } });

  async function paddingBytes(): Promise<number | undefined> {
    const { status } = await send('GET', '/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster');
    return (status as unknown as { watches?: { paddingBytes?: number } }).watches?.paddingBytes;
  }

  it('uses the least padding that delivers', async () => {
    expect(await paddingBytes()).toBe(CHUNK_HOLDS[chunkHold]);
  });

  it('kubectl sees one change at once: get -w, wait, rollout status', { timeout: 90_000 }, async () => {
    const watch = start('get nodes -w --no-headers -L seen');
    await until(() => watch.lines() >= 1, { withinMs: WITHIN_MS, what: 'the node' });
    const waiting = start(`wait --for=jsonpath={.metadata.labels.seen}=yes node/a --timeout=${WITHIN_MS / 1_000}s`);
    const rollout = start(`rollout status deployment/web --timeout=${WITHIN_MS / 1_000}s`);
    await until(() => rollout.stdout().includes('Waiting'), { withinMs: WITHIN_MS, what: 'a rollout that waits' });
    await label('yes');
    const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await send('PATCH', `${DEPLOYMENTS}/web/status`, { status });
    await until(() => watch.stdout().includes(' yes'), { withinMs: WITHIN_MS, what: 'one change in get -w' });
    watch.interrupt();
    await watch.ended;
    expect(await waiting.ended).toMatchObject({ exitCode: 0 });
    expect(await rollout.ended).toMatchObject({ exitCode: 0 });
  });

  it('the JavaScript client sees one change at once', { timeout: 60_000 }, async () => {
    const config = new KubeConfig();
    config.loadFromFile(system.kubeconfigPath);
    const seen: string[] = [];
    const controller = await new Watch(config).watch(
      NODES,
      {},
      (type: string, object: { metadata?: { labels?: { seen?: string } } }) => {
        seen.push(`${type} ${object.metadata?.labels?.seen}`);
      },
      () => {},
    );
    await until(() => seen.length > 0, { withinMs: WITHIN_MS, what: 'the node' });
    await label('by-javascript');
    await until(() => seen.includes('MODIFIED by-javascript'), { withinMs: WITHIN_MS, what: 'one change' });
    controller.abort();
  });

  it('the Python client sees one change at once', { timeout: 60_000 }, async () => {
    const followed = promisify(execFile)('/usr/bin/python3', [PYTHON_CLIENT], {
      env: { KUBECONFIG: system.kubeconfigPath, PATH: process.env['PATH'] ?? '' },
      timeout: 50_000,
    });
    const { stdout } = await followed;
    expect(JSON.parse(stdout)).toEqual(['ADDED', 'MODIFIED by-python']);
  });
});
