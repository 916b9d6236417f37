/** kill -9 during many writes: acknowledged writes are stored afterwards, complete and in order. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';

const WRITERS = 8;
/** Acknowledged writes before the process is killed. */
const KILL_AFTER = 200;
const ROUNDS_MAX = 500;
const NODES = '/api/v1/nodes';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

/** The last acknowledged state of an object, and the write in progress when the server was killed. */
interface Acknowledged {
  path: string;
  resourceVersion: number;
  /** Label `round` for nodes, renewTime for leases. */
  value: string;
  underWay: string | undefined;
}

const versionOf = (object: KubeObject): number => Number(object.metadata.resourceVersion);

describe('a killed local mode', { timeout: 180_000 }, () => {
  let dataDir: string;
  let local: LocalForTest | undefined;

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'nk-crash-'));
  });
  afterEach(async () => {
    await local?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('loses no acknowledged write and continues with larger versions', async () => {
    local = await startLocalForTest({ nodes: 3, dataDir });
    const { client } = local;
    const known = new Map<string, Acknowledged>();
    let acknowledged = 0;
    let killed: Promise<void> | undefined;

    function note(path: string, value: string, object: KubeObject): void {
      known.set(path, { path, value, resourceVersion: versionOf(object), underWay: undefined });
      acknowledged += 1;
      if (acknowledged === KILL_AFTER) killed = local!.kill();
    }

    async function write(writer: number): Promise<void> {
      const name = `crash-${writer}`;
      const node = `${NODES}/${name}`;
      const lease = `${LEASES}/${name}`;
      for (let round = 0; round < ROUNDS_MAX && killed === undefined; round += 1) {
        const value = String(round);
        const remembered = known.get(node);
        if (remembered !== undefined) remembered.underWay = value;
        const labels = { round: value };
        const written = await (remembered === undefined
          ? client.send({
              method: 'POST',
              path: NODES,
              body: { kind: 'Node', apiVersion: 'v1', metadata: { name, labels } },
            })
          : client.send({
              method: 'PATCH',
              path: node,
              body: { metadata: { labels } },
              contentType: 'application/merge-patch+json',
            }));
        if (written.kind === 'failed') return;
        expect([200, 201]).toContain(written.status);
        note(node, value, written.body as KubeObject);

        const renewTime = new Date(Date.UTC(2026, 0, 1) + round * 1_000).toISOString().replace('Z', '000Z');
        const before = known.get(lease);
        if (before !== undefined) before.underWay = renewTime;
        const body = {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name, namespace: 'kube-node-lease' },
          spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime },
        };
        const renewed = await (before === undefined
          ? client.send({ method: 'POST', path: LEASES, body })
          : client.send({
              method: 'PUT',
              path: lease,
              body: { ...body, metadata: { ...body.metadata, resourceVersion: String(before.resourceVersion) } },
            }));
        if (renewed.kind === 'failed') return;
        expect([200, 201]).toContain(renewed.status);
        note(lease, renewTime, renewed.body as KubeObject);
      }
    }

    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
    expect(acknowledged).toBeGreaterThanOrEqual(KILL_AFTER);
    await killed;

    local = await startLocalForTest({ nodes: 3, dataDir });
    let newest = 0;
    for (const { path, value, resourceVersion, underWay } of known.values()) {
      newest = Math.max(newest, resourceVersion);
      const answer = await local.client.send({ method: 'GET', path });
      expect(answer, path).toMatchObject({ kind: 'answered', status: 200 });
      const object = (answer as { body: KubeObject }).body;
      const found = path.startsWith(NODES) ? object.metadata.labels?.['round'] : object.spec?.['renewTime'];
      // The write in progress may be stored. Nothing older than the acknowledged state may be.
      expect([value, underWay], path).toContain(found);
      expect(versionOf(object), path).toBeGreaterThanOrEqual(resourceVersion);
    }
    const body = { kind: 'Node', apiVersion: 'v1', metadata: { name: 'after-the-crash' } };
    const created = await local.client.send({ method: 'POST', path: NODES, body });
    expect(created).toMatchObject({ status: 201 });
    expect(versionOf((created as { body: KubeObject }).body)).toBeGreaterThan(newest);
  });
});
