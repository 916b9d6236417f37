/** A site with a relay: real agents, each a process, in local mode. The relay is killed while machines depend on it. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootstrapTokenCommand } from '../../cli/bootstrap-token.ts';
import { freePort } from '../../shared/host/loopback.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const PROGRAM = fileURLToPath(new URL('../../agent/bin/nodekeeper-agent.ts', import.meta.url));
const MACHINES = ['site-1', 'site-2'];
const soon = { withinMs: 60_000, everyMs: 250 };

describe('a site with a relay', { timeout: 120_000 }, () => {
  let local: LocalForTest;
  let directory: string;
  let token: string;
  let relayPort: number;
  let metricsPort: number;
  const agents = new Map<string, ChildProcess>();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-site-'));
    local = await startLocalForTest({ nodes: 0 });
    token = await bootstrapToken();
    [relayPort, metricsPort] = [await freePort(), await freePort()];
    writeFileSync(join(directory, 'ca.pem'), local.access.ca ?? '');
    const made = agentCommand(['relay', 'init', '--directory', directory, '--name', '127.0.0.1']);
    expect([made.status, made.stderr]).toEqual([0, '']);
    const files = `certificateFile: ${directory}/relay.pem\n  privateKeyFile: ${directory}/relay.key`;
    start('relay', metricsPort, `relay:\n  port: ${relayPort}\n  ${files}`);
    await until(async () => (await metrics()) !== '', soon);
    const relayed = `heartbeatEndpoint: https://127.0.0.1:${relayPort}\nheartbeatCertificateAuthorityFile: ${directory}/site-ca.pem`;
    for (const name of MACHINES) start(name, 0, `${relayed}\nwitness:\n  port: ${await freePort()}`);
  }, 120_000);

  afterAll(async () => {
    for (const child of agents.values()) child.kill('SIGKILL');
    await local?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const agentCommand = (args: readonly string[]) =>
    spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });

  async function bootstrapToken(): Promise<string> {
    let printed = '';
    await bootstrapTokenCommand(['create', '--uses', '5', '--kubeconfig', local.kubeconfig], {
      environment: {},
      nowMs: Date.now(),
      print: (line) => {
        printed ||= line;
      },
    });
    return printed.trim();
  }

  /** A heartbeat every ten seconds: with a shorter interval machines do not use a relay. */
  function start(nodeName: string, healthzPort: number, more: string): void {
    const config = join(directory, `${nodeName}.yaml`);
    writeFileSync(
      config,
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: ${local.access.url}
certificateAuthorityFile: ${directory}/ca.pem
bootstrapToken: ${token}
hostnameOverride: ${nodeName}
rootDirectory: ${directory}/${nodeName}
runtime: none
${more}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
nodeLeaseDurationSeconds: 40
failSwapOn: false
healthzPort: ${healthzPort}
`,
    );
    agents.set(nodeName, spawn(process.execPath, [PROGRAM, '--config', config], { stdio: 'ignore' }));
  }

  const metrics = () =>
    new Promise<string>((resolve) => {
      get({ host: '127.0.0.1', port: metricsPort, path: '/metrics' }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      }).on('error', () => resolve(''));
    });
  const relayedHeartbeats = async (): Promise<number> =>
    Number(/nodekeeper_agent_relayed_heartbeats_total\{code="200"\} (\d+)/.exec(await metrics())?.[1] ?? 0);

  async function read<T extends KubeObject>(path: string): Promise<T> {
    const answer = await local.client.send({ method: 'GET', path });
    if (answer.kind !== 'answered' || answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.body as T;
  }
  const versionOf = async (name: string): Promise<number> => {
    const lease = await read(`/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`);
    return Number(lease.metadata.resourceVersion);
  };
  const readyOf = async (name: string) =>
    (await read<KubeNode>(`/api/v1/nodes/${name}`)).status?.conditions?.find(({ type }) => type === 'Ready')?.status;

  it('sends the heartbeats of its machines, and its machines are Ready', async () => {
    await until(async () => (await relayedHeartbeats()) >= 4, soon);
    for (const name of MACHINES) expect(await readyOf(name)).toBe('True');
    expect(await metrics()).toContain('nodekeeper_agent_site_machines 2');
    expect(await metrics()).toMatch(/nodekeeper_agent_site_probes_total\{outcome="answered"\} [2-9]/);
    expect(await metrics()).not.toContain('nodekeeper_agent_relay_batches_total{outcome="failed"}');
    // Creations are answered 201: these are the batches.
    expect(await metrics()).toMatch(/nodekeeper_agent_requests_total\{code="200",method="POST"\} \d/);
  });

  it('is not needed: when the relay is killed, its machines send directly', async () => {
    const child = agents.get('relay')!;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
    const before = await Promise.all(MACHINES.map(versionOf));
    // Far from the grace period of 40 s.
    await until(
      async () => (await Promise.all(MACHINES.map(versionOf))).every((version, index) => version > before[index]!),
      { withinMs: 20_000, everyMs: 250, what: 'direct heartbeats' },
    );
    for (const name of MACHINES) expect(await readyOf(name)).toBe('True');
  });
});
