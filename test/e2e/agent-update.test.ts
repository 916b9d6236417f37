/**
 * The built agent updates itself against local mode: a good version is kept, a bad one is replaced by the one before.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { buildAgent } from '../../scripts/build-agent.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import type { KubeAgentRelease, KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NODE = 'edge-1';
const RELEASES = '/apis/nodekeeper.dev/v1alpha1/agentreleases';
/** Prints its version, and does not run. */
const BAD = 'if (process.argv[2] === "--version") { console.log("0.9.2"); process.exit(0); } process.exit(7);';
const soon = { withinMs: 60_000, everyMs: 250 };

describe('an agent of an earlier version', { timeout: 150_000 }, () => {
  let local: LocalForTest;
  let directory: string;
  let files: Server;
  let child: ChildProcess | undefined;
  let isOver = false;
  let output = '';
  const at = (name: string): string => join(directory, name);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-update-'));
    local = await startLocalForTest({ nodes: 0 });
    await buildAgent(at('installed'), '0.9.0');
    await buildAgent(at('next'), '0.9.1');
    writeFileSync(at('bad.mjs'), BAD);
    files = createServer((request, response) => response.end(readFileSync(at(request.url ?? ''))));
    await listenOnLoopback(files);
    const command = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', 'edge-*'];
    const { stdout } = await promisify(execFile)(process.execPath, [...command, '--kubeconfig', local.kubeconfig]);
    writeFileSync(at('token'), stdout.trim());
    writeFileSync(at('ca.pem'), local.access.ca ?? '');
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    writeFileSync(at('key.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(at('key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(
      at('agent.yaml'),
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${local.access.url}"
certificateAuthorityFile: ${at('ca.pem')}
bootstrapTokenFile: ${at('token')}
updatePublicKeyFile: ${at('key.pub')}
updateCheckPeriod: 10s
hostnameOverride: ${NODE}
rootDirectory: ${at('state')}
healthzPort: 0
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
nodeLeaseDurationSeconds: 4
`,
    );
    superviseAgent();
  }, 120_000);

  afterAll(async () => {
    isOver = true;
    child?.kill('SIGKILL');
    files?.close();
    await local?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Stands for the unit: whenever the agent ends, it is started again. */
  function superviseAgent(): void {
    if (isOver) return;
    const args = [join(directory, 'installed/start-agent.mjs'), '--config', at('agent.yaml')];
    const env = { PATH: process.env['PATH'], STATE_DIRECTORY: at('state') };
    child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.once('exit', superviseAgent);
  }

  const get = async <T extends KubeObject>(path: string): Promise<T | undefined> => {
    const answer = await local.client.send({ method: 'GET', path });
    return answer.kind === 'answered' && answer.status === 200 ? (answer.body as T) : undefined;
  };
  const eventually = <T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> =>
    until(look, { ...soon, what }).catch((error: Error) => {
      throw new Error(`${error.message}\n${output.slice(-6_000)}`);
    });
  const versionOfNode = async (): Promise<string> =>
    (await get<KubeNode>(`/api/v1/nodes/${NODE}`))?.status?.nodeInfo?.['kubeletVersion'] ?? '';
  const release = () => get<KubeAgentRelease>(`${RELEASES}/agent`);

  async function publish(file: string): Promise<void> {
    const { port } = files.address() as AddressInfo;
    const script = [join(ROOT, 'scripts/agent-release.ts'), '--file', at(file), '--key', at('key')];
    const url = `http://127.0.0.1:${port}/${file}`;
    const { stdout } = await promisify(execFile)(process.execPath, [...script, '--url', url]);
    const contentType = 'application/apply-patch+yaml';
    const path = `${RELEASES}/agent?fieldManager=test&force=true`;
    const answer = await local.client.send({ method: 'PATCH', path, contentType, body: parse(stdout) });
    expect(answer).toMatchObject({ kind: 'answered', status: expect.toBeOneOf([200, 201]) });
  }

  it('registers, and says that it updates itself', async () => {
    const node = await eventually('the Node', () => get<KubeNode>(`/api/v1/nodes/${NODE}`));
    expect(node.metadata.annotations).toMatchObject({ 'nodekeeper.dev/agent-version': '0.9.0' });
  });

  it('installs a release, and keeps it after its heartbeats', async () => {
    await publish('next/nodekeeper-agent.mjs');
    await eventually('the update', async () => (await release())?.status?.updated === 1);
    await eventually(
      'the new version',
      async () => (await versionOfNode()) === `${KUBERNETES_VERSION}-nodekeeper.0.9.1`,
    );
    expect((await release())?.status).toMatchObject({ nodes: 1, updated: 1, updating: [], failed: [] });
  });

  it('returns from a version that does not run, and reports it', async () => {
    const before = readlinkSync(at('state/agents/current'));
    await publish('bad.mjs');
    const status = await eventually('the failure', async () => {
      const { status: current } = (await release()) ?? {};
      return (current?.failed ?? []).length > 0 && current;
    });
    expect(status.failed).toMatchObject([{ node: NODE, message: '3 starts without 2 accepted heartbeats' }]);
    expect(readlinkSync(at('state/agents/current'))).toBe(before);
    expect(await versionOfNode()).toBe(`${KUBERNETES_VERSION}-nodekeeper.0.9.1`);
    const reasons = async () => {
      const { items = [] } = ((await get('/api/v1/namespaces/default/events')) ?? {}) as { items?: KubeObject[] };
      return items.map((event) => String(event['reason']));
    };
    await eventually('the event', async () => (await reasons()).includes('AgentUpdateFailed'));
    expect(await reasons()).toContain('AgentUpdated');
  });
});
