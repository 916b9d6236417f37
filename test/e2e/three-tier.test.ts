/**
 * A chart of three tiers, as typed: Helm installs it from one machine onto three others, which agents run. The tiers
 * find each other by the names of Services, one of them keeps its data on a claim, and a machine is lost. Machines are
 * network namespaces; all programs are real.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagedProgram } from '../support/kubectl-layers.ts';
import { type MachineNetwork, machineNetwork, missingNamespaces } from '../support/machine-network.ts';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHART = join(ROOT, 'examples/three-tier');
const TOKEN = 'a'.repeat(43);
const ADDRESSES = ['10.77.0.1', '10.77.0.11', '10.77.0.12', '10.77.0.13'];
const API_URL = `https://${ADDRESSES[0]}:6443`;
const NODE_PORT = 30_080;
const GRACE_SECONDS = 20;
const MINOR = 35;
const COMMAND_MS = 60_000;
/** That one of two is never chosen has a chance of 2⁻¹⁹. */
const BALANCED_TIMES = 20;
const POLICY = `nodeMonitorGracePeriodSeconds: ${GRACE_SECONDS}
beatIntervalSeconds: 2
leaseDurationSeconds: 10
`;

const missing = missingNamespaces();
const suite = missing === undefined ? describe : describe.skip;
const title = missing === undefined ? 'three tiers' : `three tiers (skipped: no network namespaces: ${missing})`;

suite(title, { timeout: 180_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-three-tier-'));
  const kubeconfig = join(directory, 'kubeconfig');
  const ends: (() => Promise<void>)[] = [];
  let network: MachineNetwork;
  let output = '';

  const on = (machine: number): readonly string[] => ['netns', 'exec', network.machines[machine]!.namespace];

  /** Ends with the suite. Its output is part of each failure. */
  function start(machine: number, args: readonly string[]): void {
    const child = spawn('ip', [...on(machine), process.execPath, ...args], { cwd: ROOT });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    ends.push(() => {
      child.kill('SIGKILL');
      return ended;
    });
  }

  /** Runs a program on the first machine. @throws Error with its output */
  function run(program: string, ...args: readonly string[]): string {
    const env = { HOME: directory, PATH: process.env['PATH'] ?? '', KUBECONFIG: kubeconfig };
    return execFileSync('ip', [...on(0), program, ...args], { encoding: 'utf8', env, timeout: COMMAND_MS });
  }
  const helm = (...args: readonly string[]): string => run(packagedProgram(MINOR, 'helm'), ...args);
  const kubectl = (...args: readonly string[]): string => run(packagedProgram(MINOR, 'kubectl'), ...args);

  async function soon<T>(
    what: string,
    withinMs: number,
    look: () => Promise<T | undefined | false> | T | undefined | false,
  ): Promise<T> {
    return until(look, { withinMs, everyMs: 500, what }).catch((cause: Error) => {
      throw new Error(`${cause.message}\n${output.slice(-6_000)}`, { cause });
    });
  }

  function joinCluster(machine: number): void {
    const name = `edge-${machine}`;
    const root = join(directory, name);
    mkdirSync(root);
    execFileSync('ip', [...on(machine), 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
    writeFileSync(
      join(root, 'agent.yaml'),
      `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: ${API_URL}
certificateAuthorityFile: ${directory}/data/ca.pem
bootstrapTokenFile: ${directory}/token
runtime: exec
rootDirectory: ${root}/root
services: {enabled: true}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
`,
    );
    const options = ['--config', join(root, 'agent.yaml'), '--hostname-override', name, '--healthz-port', '0'];
    start(machine, [join(ROOT, 'agent/bin/nodekeeper-agent.ts'), ...options]);
  }

  beforeAll(async () => {
    network = machineNetwork(ADDRESSES);
    const sha256 = createHash('sha256').update(TOKEN).digest('hex');
    writeFileSync(join(directory, 'users.json'), JSON.stringify([{ sha256, user: 'ada', groups: ['system:masters'] }]));
    writeFileSync(join(directory, 'policy.yaml'), POLICY);
    const data = join(directory, 'data');
    const options = ['--data', data, '--listen', ADDRESSES[0]!, '--tokens', join(directory, 'users.json')];
    start(0, [join(ROOT, 'cli/bin/nodekeeper.ts'), 'serve', ...options, '--policy', join(directory, 'policy.yaml')]);
    await soon('a cluster', 30_000, () => /serves/.test(output) && existsSync(join(data, 'ca.pem')));
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'edge' },
        clusters: [{ name: 'edge', cluster: { server: API_URL, 'certificate-authority': join(data, 'ca.pem') } }],
        users: [{ name: 'ada', user: { token: TOKEN } }],
        contexts: [{ name: 'edge', context: { cluster: 'edge', user: 'ada' } }],
      }),
    );
    const program = join(ROOT, 'cli/bin/nodekeeper.ts');
    const token = run(process.execPath, program, 'bootstrap-token', 'create', '--uses', '3', '--nodes', 'edge-*');
    writeFileSync(join(directory, 'token'), token.trim());
    for (const machine of [1, 2, 3]) joinCluster(machine);
    await soon('three machines', 60_000, () => kubectl('get', 'nodes').match(/ Ready /g)?.length === 3);
  }, 120_000);

  afterAll(async () => {
    await Promise.all(ends.map((end) => end()));
    await network?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** The answers of the web tier at the node port of a machine, asked by another one. */
  async function answers(from: number, at: number, times: number): Promise<readonly string[]> {
    const texts: string[] = [];
    for (let index = 0; index < times; index += 1) {
      texts.push(await network.machines[from]!.get(`http://${ADDRESSES[at]}:${NODE_PORT}`));
    }
    return texts;
  }
  const WHOLE = /^web@(edge-\d) api@(edge-\d) count (\d+)$/;
  /** What is no answer counts as a machine. */
  const machinesIn = (texts: readonly string[], tier: 1 | 2): readonly string[] =>
    [...new Set(texts.map((text) => WHOLE.exec(text)?.[tier] ?? text))].toSorted();
  const nodesOf = (app: string): readonly string[] =>
    kubectl('get', 'pods', '-l', `app=${app}`, '-o', 'jsonpath={.items[*].spec.nodeName}').split(' ').toSorted();

  it('are installed by Helm, and find each other by the names of Services', async () => {
    helm('install', 'shop', CHART, '--set', `node=${process.execPath}`);
    await soon('five ready pods', 90_000, () => kubectl('get', 'pods').match(/ 1\/1 /g)?.length === 5);
    const expected = [nodesOf('web'), nodesOf('api')];
    await soon(`answers of ${JSON.stringify(expected)}`, 60_000, async () => {
      const texts = await answers(1, 2, BALANCED_TIMES);
      return isDeepStrictEqual([machinesIn(texts, 1), machinesIn(texts, 2)], expected);
    });
  });

  it('keep their data on a claim when their pod is replaced', async () => {
    const countIn = (text: string): number => Number(WHOLE.exec(text)?.[3]);
    const before = countIn((await answers(1, 2, 1))[0]!);
    expect(before).toBeGreaterThan(BALANCED_TIMES);
    kubectl('delete', 'pod', 'store-0');
    const [after] = await soon('answers of the new pod', 60_000, async () => {
      const texts = await answers(1, 2, 1);
      return WHOLE.test(texts[0]!) && texts;
    });
    expect(countIn(after!)).toBeGreaterThan(before);
    expect(kubectl('get', 'persistentvolumeclaims', '-o', 'jsonpath={.items[*].status.phase}')).toBe('Bound');
  });

  it('answer without a machine that is lost, once its grace period is over', async () => {
    const [store] = nodesOf('store');
    const lost = Number(
      nodesOf('api')
        .find((name) => name !== store)!
        .slice(-1),
    );
    const [from, at] = [1, 2, 3].filter((machine) => machine !== lost) as [number, number];
    network.cut(network.machines[lost]!);
    const cutMs = Date.now();
    const left = await soon('answers without the lost machine', 120_000, async () => {
      const texts = await answers(from, at, BALANCED_TIMES);
      return texts.every((text) => WHOLE.test(text)) && texts;
    });
    console.log(`the lost machine was out of the rules after ${Math.round((Date.now() - cutMs) / 1_000)} s`);
    expect([...machinesIn(left, 1), ...machinesIn(left, 2)]).not.toContain(`edge-${lost}`);
  });

  it('are removed, and then refused at their node port', async () => {
    helm('uninstall', 'shop');
    const [at] = [1, 2, 3].filter((machine) => kubectl('get', 'node', `edge-${machine}`).includes(' Ready ')) as [
      number,
    ];
    await soon('a refusal', 60_000, async () => (await answers(at, at, 1))[0] === 'ECONNREFUSED');
  });
});
