/**
 * Witnesses end to end: a site of six real agents, each a process, in a `nodekeeper serve`. One agent is killed, and
 * another one loses the network of the site at the same moment, but not its way to the cluster.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootstrapTokenCommand } from '../../cli/bootstrap-token.ts';
import { explainCommand } from '../../cli/explain.ts';
import { type Link, startLink } from '../../demo/machines/link.ts';
import { parseServeOptions } from '../../server/options.ts';
import { type ServedCluster, startServe } from '../../server/serve.ts';
import { freePort } from '../../shared/host/loopback.ts';
import { apiClientOf, readKubeconfig } from '../support/kubeconfig.ts';
import { until } from '../support/until.ts';

const PROGRAM = fileURLToPath(new URL('../../agent/bin/nodekeeper-agent.ts', import.meta.url));
const KILLED = 'site-1';
const CUT = 'site-2';
const OTHERS = ['site-3', 'site-4', 'site-5'];
/** The grace period without witnesses. Seconds. */
const GRACE_SECONDS = 40;
const soon = { withinMs: 60_000, everyMs: 250 };

describe('a site with a relay', { timeout: 120_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-witnesses-'));
  const agents = new Map<string, ChildProcess>();
  /** The ways of one machine inside the site: to the relay, and from others to its witness port. */
  const links: Link[] = [];
  let served: ServedCluster;
  let kubeconfig: string;
  let token: string;
  let metricsPort: number;

  beforeAll(async () => {
    const options = ['--data', join(directory, 'data'), '--port', '0', '--log-level', 'error'];
    served = await startServe(parseServeOptions(options), { print: () => {} });
    kubeconfig = served.kubeconfigPath!;
    token = await printed((io) => bootstrapTokenCommand(['create', '--uses', '6', '--kubeconfig', kubeconfig], io));
    writeFileSync(join(directory, 'ca.pem'), served.caPem ?? '');
    const relay = ['relay', 'init', '--directory', directory, '--name', '127.0.0.1'];
    const made = spawnSync(process.execPath, [PROGRAM, ...relay], { encoding: 'utf8' });
    expect([made.status, made.stderr]).toEqual([0, '']);
    const relayPort = await freePort();
    metricsPort = await freePort();
    const files = `certificateFile: ${directory}/relay.pem\n  privateKeyFile: ${directory}/relay.key`;
    start('relay', metricsPort, `relay:\n  port: ${relayPort}\n  ${files}`);
    await until(async () => (await metrics()) !== '', soon);
    for (const name of [KILLED, ...OTHERS]) start(name, 0, member(relayPort, `port: ${await freePort()}`));
    const witness = { host: '127.0.0.2', port: 0 };
    links.push(await startLink({ host: '127.0.0.1', port: relayPort }), await startLink(witness));
    witness.port = links[1]!.port;
    start(CUT, 0, member(links[0]!.port, `address: ${witness.host}\n  port: ${witness.port}`));
  }, 120_000);

  afterAll(async () => {
    for (const child of agents.values()) child.kill('SIGKILL');
    for (const link of links) await link.close();
    await served?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const member = (port: number, witness: string): string =>
    `heartbeatEndpoint: https://127.0.0.1:${port}
heartbeatCertificateAuthorityFile: ${directory}/site-ca.pem
witness:
  ${witness}`;

  function start(nodeName: string, healthzPort: number, more: string): void {
    const config = join(directory, `${nodeName}.yaml`);
    writeFileSync(
      config,
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: ${served.url}
certificateAuthorityFile: ${directory}/ca.pem
bootstrapToken: ${token}
hostnameOverride: ${nodeName}
rootDirectory: ${directory}/${nodeName}
runtime: none
${more}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
healthzPort: ${healthzPort}
`,
    );
    agents.set(nodeName, spawn(process.execPath, [PROGRAM, '--config', config], { stdio: 'ignore' }));
  }

  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const metric = async (name: string): Promise<number> =>
    Number(new RegExp(`^nodekeeper_agent_${name} (\\d+)$`, 'm').exec(await metrics())?.[1] ?? 0);

  async function printed(command: (io: Parameters<typeof explainCommand>[1]) => Promise<void>): Promise<string> {
    const lines: string[] = [];
    await command({ environment: {}, nowMs: Date.now(), print: (line) => void lines.push(line) });
    return lines.join('\n').trim();
  }
  async function renewTimeOf(name: string): Promise<string> {
    const client = apiClientOf(readKubeconfig(kubeconfig), { connectionsMax: 1, timeoutMs: 5_000 });
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${name}`;
    const answer = await client.send({ method: 'GET', path });
    client.close();
    return (answer as { readonly body: { readonly spec: { readonly renewTime: string } } }).body.spec.renewTime;
  }
  /** Fails without a decision. */
  const explained = (name: string): Promise<string> =>
    printed((io) => explainCommand(['node', name, '--verify', '--kubeconfig', kubeconfig], io));
  const markOf = async (name: string): Promise<string | undefined> =>
    (await explained(name).catch(() => '')).split('\n').find((line) => /MarkUnknown/.test(line));

  it('has its killed machine marked by two witnesses, and never the one that still reaches the cluster', async () => {
    await until(async () => (await metric('site_machines')) === 5, { ...soon, what: 'that all machines are watched' });
    agents.get(KILLED)!.kill('SIGKILL');
    for (const link of links) link.cut();
    const fromMs = performance.now();
    await until(async () => (await metric('site_silent')) === 2, { ...soon, what: 'that two machines are reported' });
    await until(() => markOf(KILLED), { ...soon, what: 'that the killed one is marked' });
    const seconds = (performance.now() - fromMs) / 1_000;
    process.stdout.write(`${KILLED} was marked ${seconds.toFixed(1)} s after it was killed\n`);
    expect(seconds).toBeLessThan(GRACE_SECONDS);
    expect(await explained(KILLED)).toMatch(
      /reported as silent on its site by relay \(relay\) since .* and site-[345]/,
    );
    // Its reports are as old. It sends a heartbeat every 4 s.
    const renewals = new Set<string>();
    await until(async () => renewals.add(await renewTimeOf(CUT)).size > 2, soon);
    expect(await markOf(CUT)).toBeUndefined();
  });
});
