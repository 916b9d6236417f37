/**
 * Informers of the JavaScript client library on nodes and pods, through changes by another client and two kills of the
 * server. In the end their caches equal the server's state (L9 through a third-party client).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CoreV1Api,
  type Informer,
  KubeConfig,
  type KubernetesObject,
  makeInformer,
  type ObjectCache,
} from '@kubernetes/client-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { clientTable } from '../support/client-table.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROUNDS = 3;
const OBJECTS = 12;
/** The library's informers stop on any error but 410. Restarting is the program's task, according to its manual. */
const RESTART_MS = 300;

type AnInformer = Informer<KubernetesObject> & ObjectCache<KubernetesObject>;

/** Keeps an informer running until it is stopped. */
function keepGoing(informer: AnInformer, onError: (cause: unknown) => void): () => Promise<void> {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => {
    informer.start().catch(again);
  };
  const again = (cause: unknown): void => {
    onError(cause);
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(start, RESTART_MS);
  };
  informer.on('error', again);
  start();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await informer.stop();
  };
}

const summary = (objects: readonly { readonly metadata?: unknown }[]): string[] =>
  objects
    .map(({ metadata }) => {
      const { namespace = '', name = '', resourceVersion = '' } = metadata as KubeObject['metadata'];
      return `${namespace}/${name}@${resourceVersion}`;
    })
    .sort();

const clientMajor = (): string => {
  const manifest = new URL('../../node_modules/@kubernetes/client-node/package.json', import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version.split('.')[0] ?? '';
};

describe('informers of the JavaScript client', { timeout: 180_000 }, () => {
  let dataDir: string;
  let local: LocalForTest;
  const undo: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'nk-informer-'));
    local = await startLocalForTest({ nodes: 0, controllers: false, dataDir });
  });
  afterEach(async () => {
    for (const each of undo.splice(0)) await each();
    await local.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const send = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body: unknown): Promise<void> => {
    const answer = await local.client.send({
      method,
      path,
      body,
      ...(method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {}),
    });
    if (answer.kind !== 'answered' || answer.status >= 400)
      throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  };

  async function changeThings(round: number): Promise<void> {
    for (let index = 0; index < OBJECTS; index += 1) {
      const name = `r${round}-${index}`;
      await send('POST', '/api/v1/nodes', { metadata: { name } });
      await send('POST', '/api/v1/namespaces/default/pods', {
        metadata: { name },
        spec: { containers: [{ name: 'main', image: 'main' }] },
      });
      await send('PATCH', `/api/v1/nodes/${name}`, { metadata: { labels: { round: String(round) } } });
      if (index % 3 === 0) await send('DELETE', `/api/v1/namespaces/default/pods/${name}`, {});
      if (index % 4 === 0) await send('DELETE', `/api/v1/nodes/${name}`, {});
    }
  }

  it('equal the server after changes and two kills of it', async () => {
    const config = new KubeConfig();
    config.loadFromFile(local.kubeconfig);
    const port = Number(new URL(local.access.url).port);
    const api = config.makeApiClient(CoreV1Api);
    const nodes: AnInformer = makeInformer(config, '/api/v1/nodes', () => api.listNode());
    const pods: AnInformer = makeInformer(config, '/api/v1/pods', () => api.listPodForAllNamespaces());
    let deletions = 0;
    const errors: string[] = [];
    for (const informer of [nodes, pods]) {
      informer.on('delete', () => {
        deletions += 1;
      });
      undo.push(keepGoing(informer, (cause) => errors.push(String(cause))));
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      await changeThings(round);
      // A watch delivers, redirected and streamed, not a list after an error.
      if (round === 0) {
        await until(() => nodes.list().length === 9, { withinMs: 30_000 });
        expect(errors).toEqual([]);
      }
      if (round === ROUNDS - 1) break;
      await local.kill();
      local = await startLocalForTest({ nodes: 0, controllers: false, dataDir, port });
    }
    const stored = async (path: string): Promise<string[]> => {
      const answer = await local.client.send({ method: 'GET', path });
      if (answer.kind !== 'answered') throw new Error(`no answer from ${path}`);
      return summary((answer.body as { items: KubeObject[] }).items);
    };
    const expected = [await stored('/api/v1/nodes'), await stored('/api/v1/pods')];
    expect(expected.map((list) => list.length)).toEqual([27, 24]);
    const cached = (): string[][] => [summary(nodes.list()), summary(pods.list())];
    await until(() => JSON.stringify(cached()) === JSON.stringify(expected), { withinMs: 30_000 }).catch(
      () => undefined,
    );
    expect(cached()).toEqual(expected);
    expect(deletions).toBeGreaterThan(0);
    const table = clientTable();
    table.passed({
      client: 'JavaScript `@kubernetes/client-node`',
      version: clientMajor(),
      what: 'informers, also over two kills of the server',
    });
    expect(table.missing()).toEqual([]);
  });
});
