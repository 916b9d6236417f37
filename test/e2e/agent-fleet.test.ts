/**
 * Three agents as users run them: processes of the bundled file, each with a directory, a bootstrap token and a key of
 * its own, controlled with kubectl only. One of them has its own message bus, where a stand-in for logind announces a
 * shutdown.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { isAlive, type ProcessIdentity, readBootId } from '../../agent/adapters/runtime-exec/process-table.ts';
import { bootstrapTokenCommand } from '../../cli/bootstrap-token.ts';
import { agentNodeFlags, buildAgent } from '../../scripts/build-agent.ts';
import { type KubectlPlace, kubectlOf, makePlace, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { MockSystemBus, missingPackages } from '../support/mock-system-bus.ts';
import { until } from '../support/until.ts';

const kubectl = kubectlOf(33);
const missing = missingPackages();
const why = missing.length === 0 ? '' : ` (skipped: not installed: ${missing.join(', ')})`;

const NODES = ['alpha', 'beta', 'gamma'] as const;
type Name = (typeof NODES)[number];
const PHASE_SECONDS = 4;
const LEASE_SECONDS = 8;
const POLICY = {
  beatIntervalSeconds: 2,
  leaseDurationSeconds: LEASE_SECONDS,
  nodeMonitorGracePeriodSeconds: 10,
  nodeStartupGracePeriodSeconds: 10,
  nodeEvictionRatePerSecond: 1,
  podEvictionTimeoutSeconds: 1,
};
const SOON = { withinMs: 30_000, everyMs: 250 };

interface Item {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
  readonly reason?: string;
}

describe.skipIf(kubectl === undefined)('three agents', { timeout: 60_000 }, () => {
  let directory: string;
  let place: KubectlPlace;
  let local: LocalForTest;
  let bundle: string;
  let bus: MockSystemBus | undefined;
  const agents = new Map<Name, { readonly child: ChildProcess; readonly ended: Promise<void>; output(): string }>();

  const rootOf = (name: Name): string => join(directory, name);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-fleet-'));
    place = makePlace();
    [local, bundle, bus] = await Promise.all([
      startLocalForTest({ nodes: 0, policy: POLICY }),
      buildAgent(join(directory, 'dist')),
      missing.length === 0 ? MockSystemBus.start(10 * PHASE_SECONDS * 1_000) : undefined,
    ]);
    writeFileSync(join(directory, 'ca.pem'), local.access.ca ?? '');
    for (const name of NODES) {
      await configure(name);
      startAgent(name);
    }
  }, 120_000);

  afterAll(async () => {
    await Promise.all([...agents.keys()].map((name) => endAgent(name, 'SIGKILL')));
    for (const each of NODES.flatMap(containerProcesses)) {
      if (isAlive(each, readBootId())) process.kill(each.pid, 'SIGKILL');
    }
    await bus?.stop();
    await local?.stop();
    place?.remove();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  async function configure(name: Name): Promise<void> {
    mkdirSync(rootOf(name));
    const tokenFile = join(rootOf(name), 'bootstrap-token');
    await bootstrapTokenCommand(['create', '--nodes', name, '--kubeconfig', local.kubeconfig], {
      environment: {},
      nowMs: Date.now(),
      print: (token) => writeFileSync(tokenFile, token),
    });
    const documents = [
      {
        apiVersion: 'nodekeeper.dev/v1alpha1',
        kind: 'AgentConfiguration',
        endpoint: local.access.url,
        certificateAuthorityFile: join(directory, 'ca.pem'),
        bootstrapTokenFile: tokenFile,
        hostnameOverride: name,
        nodeLabels: { site: `site-of-${name}` },
        rootDirectory: rootOf(name),
        runtime: 'exec',
        healthzPort: 0,
      },
      {
        apiVersion: 'kubelet.config.k8s.io/v1beta1',
        kind: 'KubeletConfiguration',
        failSwapOn: false,
        nodeLeaseDurationSeconds: LEASE_SECONDS,
        nodeStatusUpdateFrequency: '2s',
        ...(name === 'alpha' && bus !== undefined
          ? {
              shutdownGracePeriodByPodPriority: [0, 1_000, 100_000].map((priority) => ({
                priority,
                shutdownGracePeriodSeconds: PHASE_SECONDS,
              })),
            }
          : {}),
      },
    ];
    writeFileSync(join(rootOf(name), 'agent.yaml'), documents.map((each) => stringify(each)).join('---\n'));
  }

  function startAgent(name: Name): void {
    const child = spawn(process.execPath, [...agentNodeFlags(), bundle, '--config', join(rootOf(name), 'agent.yaml')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        ...(name === 'alpha' && bus !== undefined ? { DBUS_SYSTEM_BUS_ADDRESS: bus.address } : {}),
      },
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    agents.set(name, { child, ended, output: () => output });
  }

  async function endAgent(name: Name, signal: NodeJS.Signals): Promise<void> {
    const agent = agents.get(name);
    agent?.child.kill(signal);
    await agent?.ended;
  }

  /** Main processes of the containers in the runtime of this agent. */
  function containerProcesses(name: Name): ProcessIdentity[] {
    const pods = join(rootOf(name), 'pods');
    if (!existsSync(pods)) return [];
    return readdirSync(pods).flatMap((uid) => {
      const file = join(pods, uid, 'record.json');
      if (!existsSync(file)) return [];
      const record = JSON.parse(readFileSync(file, 'utf8')) as { containers: { process?: ProcessIdentity }[] };
      return record.containers.flatMap((container) => container.process ?? []);
    });
  }

  async function run(...args: string[]): Promise<string> {
    return runIn(undefined, ...args);
  }

  async function runIn(stdin: string | undefined, ...args: string[]): Promise<string> {
    const result = await runKubectl(kubectl!, args, {
      kubeconfig: local.kubeconfig,
      place,
      ...(stdin === undefined ? {} : { stdin }),
    });
    if (result.exitCode !== 0) throw new Error(`kubectl ${args.join(' ')}: ${result.stderr}`);
    return result.stdout;
  }

  const apply = (...objects: unknown[]): Promise<string> =>
    runIn(objects.map((each) => stringify(each)).join('---\n'), 'apply', '-f', '-');
  const get = async (...args: string[]): Promise<Item> => JSON.parse(await run('get', ...args, '-o', 'json')) as Item;
  const list = async (...args: string[]): Promise<readonly Item[]> =>
    (JSON.parse(await run('get', ...args, '-o', 'json')) as { items: Item[] }).items;
  const readyOf = (node: Item) => node.status?.conditions?.find(({ type }) => type === 'Ready');

  /** Fails with the last output of the agents. */
  async function eventually<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
    return until(look, { ...SOON, what }).catch((error: Error) => {
      const said = [...agents].map(([name, { output }]) => `${name}: ${output().slice(-1_500)}`);
      throw new Error([error.message, ...said].join('\n'), { cause: error });
    });
  }

  const readyStatus = (name: Name, status: string): Promise<Item> =>
    eventually(`${name} with Ready ${status}`, async () => {
      const node = await get('node', name);
      return readyOf(node)?.status === status ? node : undefined;
    });

  /** Runs until it receives a signal, and then writes the time into a file. */
  function pod(name: string, nodeName: Name, spec: Readonly<Record<string, unknown>> = {}) {
    const said = join(directory, 'ended');
    const script = `trap 'echo ${name} >> ${said}; exit 0' TERM; while :; do sleep 0.1; done`;
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { nodeName, containers: [{ name: 'main', image: 'none', command: ['/bin/sh', '-c', script] }], ...spec },
    };
  }

  const runningPods = (...names: string[]): Promise<true> =>
    eventually(`${names.join(', ')} running`, async () => {
      const running = (await list('pods')).filter(({ status }) => status?.phase === 'Running');
      return names.every((name) => running.some(({ metadata }) => metadata.name === name)) ? true : undefined;
    });

  it('register and report the facts of this machine', async () => {
    for (const name of NODES) await readyStatus(name, 'True');
    const [header = '', ...rows] = (await run('get', 'nodes', '-o', 'wide', '--sort-by=.metadata.name'))
      .trimEnd()
      .split('\n');
    expect(rows.map((row) => row.split(/\s+/, 2))).toEqual(NODES.map((name) => [name, 'Ready']));
    const osImage = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
    const column = (row: string, name: string): string =>
      row
        .slice(header.indexOf(name))
        .split(/\s{2,}/, 1)[0]
        ?.trim() ?? '';
    for (const row of rows) {
      expect(column(row, 'OS-IMAGE')).toBe(osImage);
      expect(column(row, 'KERNEL-VERSION')).toBe(release());
      expect(column(row, 'CONTAINER-RUNTIME')).toBe('exec://1.0.0');
      expect(column(row, 'VERSION')).toMatch(/^v1\.\d+\.\d+-nodekeeper/);
    }
    const labelled = await list('nodes', '-l', 'site=site-of-beta');
    expect(labelled.map(({ metadata }) => metadata.name)).toEqual(['beta']);
  });

  it('beat', async () => {
    const renewTimes = async () =>
      Object.fromEntries(
        (await list('leases', '-n', 'kube-node-lease')).map(({ metadata, spec }) => [
          metadata.name,
          spec?.['renewTime'],
        ]),
      );
    const before = await renewTimes();
    await eventually('a beat of each', async () => {
      const after = await renewTimes();
      return NODES.every((name) => after[name] !== undefined && after[name] !== before[name]);
    });
  });

  it('run a pod that names their node', async () => {
    await apply(pod('web', 'gamma'));
    await runningPods('web');
    expect(containerProcesses('gamma').filter((each) => isAlive(each, readBootId()))).toHaveLength(1);
  });

  it.skipIf(missing.length > 0)(
    `terminate pods by priority when the machine shuts down, and recover when it does not${why}`,
    async () => {
      const priorityClass = (name: string, value: number) => ({
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name },
        value,
      });
      await apply(priorityClass('mid', 1_000), priorityClass('high', 100_000));
      await apply(
        pod('last', 'alpha', { priorityClassName: 'high' }),
        pod('second', 'alpha', { priorityClassName: 'mid' }),
        pod('first', 'alpha'),
      );
      await runningPods('first', 'second', 'last');
      await eventually('a delay lock', async () => (await bus?.locks())?.length === 1);

      const announcedMs = performance.now();
      await bus?.announce(['b', true]);
      const down = await readyStatus('alpha', 'False');
      expect(readyOf(down)?.message).toContain('node is shutting down');
      await eventually('terminated pods', async () => {
        const ended = (await list('pods')).filter(({ status }) => status?.phase === 'Failed');
        return ended.length === 3 && ended.every(({ status }) => status?.reason === 'Terminated');
      });
      expect(readFileSync(join(directory, 'ended'), 'utf8')).toBe('first\nsecond\nlast\n');
      // Each phase ends with its last pod, before its time is over.
      expect(performance.now() - announcedMs).toBeLessThan(SOON.withinMs);
      await eventually('a released lock', async () => (await bus?.locks())?.length === 0);
      // The exit of a container is stored before the reason of its pod.
      expect(await run('get', 'pods')).toMatch(/^first +0\/1 +Completed/m);

      await apply(pod('late', 'alpha'));
      await eventually('a refused pod', async () => (await get('pod', 'late')).status?.reason === 'NodeShutdown');

      await bus?.announce(['b', false]);
      await readyStatus('alpha', 'True');
      await eventually('events of the shutdown', async () => {
        const events = await list('events', '--field-selector', 'involvedObject.kind=Node,involvedObject.name=alpha');
        return events.filter(({ reason }) => reason === 'NodeShutdown').length >= 2;
      });
    },
  );

  it('are detected when killed: Unknown, evicted, and Ready again after a restart', async () => {
    await apply(pod('kept', 'beta'));
    await runningPods('kept');
    await endAgent('beta', 'SIGKILL');
    await readyStatus('beta', 'Unknown');
    await eventually('an evicted pod', async () => (await get('pod', 'kept')).metadata.deletionTimestamp !== undefined);
    expect(await run('get', 'pods')).toMatch(/^kept .* Terminating/m);
    // The process still runs: its node only sends no heartbeats.
    expect(containerProcesses('beta').some((each) => isAlive(each, readBootId()))).toBe(true);

    startAgent('beta');
    await readyStatus('beta', 'True');
    await eventually(
      'a deleted pod',
      async () => !(await list('pods')).some(({ metadata }) => metadata.name === 'kept'),
    );
    expect(containerProcesses('beta').some((each) => isAlive(each, readBootId()))).toBe(false);
    expect(containerProcesses('gamma').some((each) => isAlive(each, readBootId()))).toBe(true);
  });
});
