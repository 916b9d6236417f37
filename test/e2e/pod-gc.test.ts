/** Pods without a node, against local mode with its own queues, streams and bundles: they are deleted, others stay. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const PODS = '/api/v1/namespaces/default/pods';

describe('pod garbage collection', { timeout: 120_000 }, () => {
  let local: LocalForTest;

  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 1, policy: { podGcPeriodSeconds: 5, orphanQuarantineSeconds: 10 } });
  }, 120_000);
  afterAll(() => local?.stop());

  const create = async (name: string, nodeName: string): Promise<void> => {
    const spec = { nodeName, containers: [{ name: 'main', image: 'registry.example/main:1' }] };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
    const answer = await local.client.send({ method: 'POST', path: PODS, body });
    expect(answer).toMatchObject({ status: 201 });
  };
  const statusOf = async (name: string): Promise<number | undefined> => {
    const answer = await local.client.send({ method: 'GET', path: `${PODS}/${name}` });
    return 'status' in answer ? answer.status : undefined;
  };

  it('deletes the pods of a node that does not exist, and keeps those of one that does', async () => {
    const startedMs = Date.now();
    await create('orphan', 'nowhere');
    await create('kept', 'edge-a-0');
    await until(async () => (await statusOf('orphan')) === 404, { withinMs: 60_000, what: 'the end of the orphan' });
    expect(Date.now() - startedMs).toBeGreaterThan(10_000);
    expect(await statusOf('kept')).toBe(200);
    expect(local.output()).not.toMatch(/ERROR/);
  });
});
