/**
 * Credentials of a node through local mode: the deployed bundles, their store, the command, and every installed
 * kubectl.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createApiClient } from '../../demo/fleet/api-client.ts';
import { IDENTITIES, identityBody, leaseBody, NODE_LEASES } from '../support/identity-cluster.ts';
import { findKubectls, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { nodeKeyPair, nodeToken } from '../support/node-key-pair.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../cli/bin/nodekeeper.ts', import.meta.url));
/** Name of the cluster in local mode. */
const CLUSTER_ID = 'nodekeeper';

describe('credentials of a node in local mode', { timeout: 60_000 }, () => {
  let local: LocalForTest;
  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0, controllers: false });
  }, 90_000);
  afterAll(() => local?.stop());

  async function bootstrapToken(...args: readonly string[]): Promise<string> {
    const command = [COMMAND, 'bootstrap-token', ...args, '--kubeconfig', local.kubeconfig];
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: ROOT });
    return stdout.trim();
  }

  async function send(token: string, method: 'POST' | 'PATCH' | 'GET', path: string, body?: unknown) {
    const { url, ca } = local.access;
    const client = createApiClient({
      url,
      token,
      connectionsMax: 1,
      timeoutMs: 30_000,
      ...(ca === undefined ? {} : { ca }),
    });
    try {
      const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
      const answer = await client.send({ method, path, ...(body === undefined ? {} : { body }), ...contentType });
      if (answer.kind === 'failed') throw answer.cause;
      return { code: answer.status, body: answer.body as { message?: string } };
    } finally {
      client.close();
    }
  }

  it.each(['ES256', 'EdDSA'] as const)('a machine with an %s key enrols and beats', async (algorithm) => {
    const name = `edge-${algorithm.toLowerCase()}`;
    const pair = nodeKeyPair(algorithm);
    const token = await bootstrapToken('create', '--nodes', 'edge-*');
    expect((await send(token, 'POST', IDENTITIES, identityBody('core-1', pair))).code).toBe(403);
    expect((await send(token, 'POST', IDENTITIES, identityBody(name, pair))).code).toBe(201);
    expect((await send(token, 'POST', IDENTITIES, identityBody('edge-other', nodeKeyPair()))).code).toBe(403);
    const own = nodeToken(pair, { nodeName: name, nowMs: Date.now(), clusterId: CLUSTER_ID });
    expect((await send(own, 'POST', NODE_LEASES, leaseBody(name))).code).toBe(201);
    const spec = { leaseDurationSeconds: 40 };
    expect((await send(own, 'PATCH', `${NODE_LEASES}/${name}`, { spec })).code).toBe(200);
    expect((await send(own, 'PATCH', `${NODE_LEASES}/edge-other`, { spec })).code).toBe(403);
    const elsewhere = nodeToken(pair, { nodeName: name, nowMs: Date.now(), clusterId: 'another' });
    expect((await send(elsewhere, 'PATCH', `${NODE_LEASES}/${name}`, { spec })).code).toBe(401);
    expect(await bootstrapToken('list')).toContain(`${token.split('.')[0]} left 0/1`);
  });

  it.each(findKubectls().map((each) => [each.name, each] as const))('%s shows and revokes', async (kind, kubectl) => {
    const name = `by-${kind}`;
    const token = await bootstrapToken('create', '--label', 'site=north');
    expect((await send(token, 'POST', IDENTITIES, identityBody(name, nodeKeyPair()))).code).toBe(201);
    const [id = ''] = token.split('.');
    const run = (...args: readonly string[]) => runKubectl(kubectl, args, { kubeconfig: local.kubeconfig });
    const identities = await run('get', 'nodeidentities');
    expect(identities.stdout).toMatch(
      new RegExp(`^NAME +KEYS +SOURCE +AGE\\n(.*\\n)*${name} +1 +bootstraptoken/${id} `),
    );
    expect((await run('get', 'bootstraptoken', id)).stdout).toMatch(
      new RegExp(`^NAME +LEFT +EXPIRES +NODES +REISSUE +AGE\\n${id} +0/1 +20\\S+Z +\\* +false `),
    );
    expect(await run('delete', 'nodeidentity', name)).toMatchObject({
      exitCode: 0,
      stdout: `nodeidentity.nodekeeper.dev "${name}" deleted\n`,
    });
    expect(await run('delete', 'bootstraptoken', id)).toMatchObject({ exitCode: 0 });
    expect((await run('get', 'nodeidentity', name)).stderr).toContain('NotFound');
    expect((await run('explain', 'bootstraptoken.spec.uses')).stdout).toContain('1 if left out');
  });
});
