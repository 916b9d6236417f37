/** `nodekeeper move` from one directory to another, while machines send heartbeats and people write. */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { stringify } from 'yaml';
import { bootstrapTokenCommand } from '../../cli/bootstrap-token.ts';
import { agentNodeFlags, buildAgent } from '../../scripts/build-agent.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { MovingMachine } from '../support/moving-machines.ts';
import { until } from '../support/until.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const MACHINES = Number(process.env['NODEKEEPER_MOVING_MACHINES'] ?? 50);
const BEAT_MS = 2_000;
const POLICY = {
  beatIntervalSeconds: 2,
  leaseDurationSeconds: 8,
  nodeMonitorGracePeriodSeconds: 10,
  nodeStartupGracePeriodSeconds: 10,
};
const MAPS = '/api/v1/namespaces/default/configmaps';
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nk-move-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
});

function nodekeeper(...args: readonly string[]): Promise<{ exitCode: number; output: string }> {
  return new Promise((resolve) => {
    const options = { cwd: ROOT, timeout: 120_000 };
    execFile(process.execPath, [join(ROOT, 'cli/bin/nodekeeper.ts'), ...args], options, (error, stdout, stderr) =>
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}`.trim() }),
    );
  });
}

async function started(name: string): Promise<LocalForTest> {
  const dataDir = join(directory, name);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const local = await startLocalForTest({ nodes: 0, dataDir, policy: POLICY });
  onTestFinished(() => local.stop());
  return local;
}

interface Listed {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string };
    readonly reason?: string;
    readonly spec?: { readonly taints?: readonly unknown[] };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

async function list({ client }: LocalForTest, path: string): Promise<Listed> {
  const answer = await client.send({ method: 'GET', path });
  if (answer.kind !== 'answered' || answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer.body as Listed;
}
const create = async ({ client }: LocalForTest, name: string): Promise<number | undefined> => {
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } };
  const answer = await client.send({ method: 'POST', path: MAPS, body });
  return answer.kind === 'answered' ? answer.status : undefined;
};
const isReady = ({ status, spec }: Listed['items'][number]): boolean =>
  spec?.taints === undefined && status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';

describe('nodekeeper move', { timeout: 240_000 }, () => {
  it('moves machines, objects and tokens: no write is lost, no node is marked, and agents follow', async () => {
    const [from, to] = [join(directory, 'a'), join(directory, 'b')];
    const before = await started('a');
    const { url, ca } = before.access;
    const stop = new AbortController();
    const machines = Array.from(
      { length: MACHINES },
      (_, index) => new MovingMachine(`m${index}`, { endpoint: url, certificateAuthority: ca! }, before.access.token),
    );
    const beating: Promise<void>[] = [];
    for (const machine of machines) {
      await machine.register();
      beating.push(machine.run(BEAT_MS, stop.signal));
    }
    onTestFinished(async () => {
      stop.abort();
      await Promise.all(beating);
    });
    await until(async () => (await list(before, '/api/v1/nodes')).items.filter(isReady).length === MACHINES, {
      withinMs: 30_000,
      what: 'ready nodes',
    });
    const acknowledged: string[] = [];
    const refusals = new Set<number | undefined>();
    const writing = (async () => {
      for (let index = 0; !stop.signal.aborted && !refusals.has(421); index += 1) {
        const status = await create(before, `w${index}`);
        if (status === 201) acknowledged.push(`w${index}`);
        else refusals.add(status);
        await pause(5);
      }
    })();
    await until(() => acknowledged.length > 50, { withinMs: 30_000, what: 'writes' });
    const uids = new Map(
      (await list(before, '/api/v1/nodes')).items.map(({ metadata }) => [metadata.name, metadata.uid]),
    );

    const moved = await nodekeeper('move', '--from', from, '--to', to);
    expect(moved).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/rows of objects.*compared by their hashes/),
    });
    const fenced = await list(before, MAPS);
    const after = await started('b');
    const announced = await nodekeeper('move', '--from', from, '--to', to, '--endpoint', after.access.url);
    expect(announced).toEqual({ exitCode: 0, output: `agents and clients are sent to ${after.access.url}` });
    await until(() => machines.every(({ at }) => at === after.access.url), {
      withinMs: 60_000,
      what: 'machines at the new address',
    });
    await writing;
    expect([...refusals].sort()).toEqual([421, 503]);

    // The generated tokens moved as well: the same client, at another port.
    const found = (await list(after, MAPS)).items.map(({ metadata }) => metadata.name);
    expect(acknowledged.filter((name) => !found.includes(name))).toEqual([]);
    expect(await create(after, 'after')).toBe(201);
    const now = await list(after, MAPS);
    expect(Number(now.metadata.resourceVersion)).toBeGreaterThan(Number(fenced.metadata.resourceVersion));
    // Longer than a grace period: whoever would be marked is marked.
    const beats = () => Math.min(...machines.map(({ answers }) => answers.get(200) ?? 0));
    const beatsNow = beats();
    await until(() => beats() >= beatsNow + 8, { withinMs: 60_000, everyMs: 250, what: 'heartbeats' });
    const nodes = (await list(after, '/api/v1/nodes')).items;
    expect(nodes.filter(isReady)).toHaveLength(MACHINES);
    expect(new Map(nodes.map(({ metadata }) => [metadata.name, metadata.uid]))).toEqual(uids);
    const marks = (await list(after, '/api/v1/events')).items.filter(({ reason }) => reason === 'NodeNotReady');
    expect(marks).toEqual([]);
    expect(await nodekeeper('move', '--from', from, '--to', to, '--abandon')).toMatchObject({ exitCode: 1 });
    console.log(`${MACHINES} machines followed; ${acknowledged.length} acknowledged writes arrived; 0 marks`);
  });

  it('an agent keeps its key, verifies the new address, stores it, and continues there', async () => {
    const [from, to, root] = [join(directory, 'a'), join(directory, 'b'), join(directory, 'agent')];
    const bundle = await buildAgent(join(directory, 'dist'));
    const before = await started('a');
    const tokenFile = join(directory, 'bootstrap-token');
    await bootstrapTokenCommand(['create', '--nodes', 'edge', '--kubeconfig', before.kubeconfig], {
      environment: {},
      nowMs: Date.now(),
      print: (token) => writeFileSync(tokenFile, token),
    });
    const config = join(directory, 'agent.yaml');
    const documents = [
      {
        ...{ apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'AgentConfiguration', endpoint: before.access.url },
        ...{ certificateAuthorityFile: join(from, 'ca.pem'), bootstrapTokenFile: tokenFile, hostnameOverride: 'edge' },
        ...{ rootDirectory: root, runtime: 'none', healthzPort: 0 },
      },
      { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', failSwapOn: false },
    ];
    writeFileSync(config, documents.map((document) => stringify(document)).join('---\n'));
    /** As systemd does, which starts it again when it ends. */
    const agent = (): Promise<number | null> => {
      const child = spawn(process.execPath, [...agentNodeFlags(), bundle, '--config', config], { stdio: 'ignore' });
      onTestFinished(() => void child.kill('SIGKILL'));
      return new Promise((resolve) => child.once('exit', resolve));
    };
    const renewedAt = async (local: LocalForTest): Promise<string> => {
      const leases = await list(local, '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases');
      const edge = leases.items.find(({ metadata }) => metadata.name === 'edge');
      return String((edge as { spec?: { renewTime?: string } } | undefined)?.spec?.renewTime ?? '');
    };
    const ended = agent();
    await until(
      async () => (await list(before, '/api/v1/nodes')).items.some(isReady) && (await renewedAt(before)) !== '',
      {
        withinMs: 30_000,
        what: 'a ready node',
      },
    );
    expect(await nodekeeper('move', '--from', from, '--to', to)).toMatchObject({ exitCode: 0 });
    const after = await started('b');
    const last = await renewedAt(after);
    expect(await nodekeeper('move', '--from', from, '--to', to, '--endpoint', after.access.url)).toMatchObject({
      exitCode: 0,
    });
    expect(await ended).toBe(0);
    expect(JSON.parse(readFileSync(join(root, 'moved.json'), 'utf8'))).toMatchObject({ endpoint: after.access.url });
    void agent();
    await until(async () => (await renewedAt(after)) > last, {
      withinMs: 30_000,
      what: 'a heartbeat at the new address',
    });
  });

  it('keeps its fence over a restart, and accepts writes again when it is abandoned', async () => {
    const [from, to] = [join(directory, 'a'), join(directory, 'b')];
    const first = await started('a');
    expect(await nodekeeper('move', '--from', from, '--to', to)).toMatchObject({ exitCode: 0 });
    await first.kill();
    const second = await started('a');
    expect(await create(second, 'refused')).toBe(503);
    expect((await list(second, MAPS)).items).toBeDefined();
    const ready = await second.client.send({ method: 'GET', path: '/readyz' });
    expect(ready).toMatchObject({ status: 500, body: expect.stringContaining(`is being moved to ${to}`) });
    expect(await nodekeeper('move', '--from', from, '--to', to, '--abandon')).toMatchObject({ exitCode: 0 });
    expect(await create(second, 'accepted')).toBe(201);
    expect(await nodekeeper('serve', '--data', to, '--port', '0')).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining('was abandoned'),
    });
  });

  it('refuses bad input in one line, with exit code 1, and changes nothing', async () => {
    const local = await started('a');
    const from = join(directory, 'a');
    const other = join(directory, 'other.db');
    writeFileSync(other, 'no database');
    const second = await started('full');
    for (const [args, expected] of [
      [[], '--from and --to are needed'],
      [['--from', from], '--from and --to are needed'],
      [['--from', join(directory, 'none'), '--to', join(directory, 'x')], 'none/data/nodekeeper.db does not exist'],
      [['--from', from, '--to', from], '--from and --to are the same'],
      [['--from', from, '--to', join(directory, 'full')], `is in use by process ${second.pid}`],
      [['--from', from, '--to', other], 'other.db is damaged'],
      [['--from', from, '--to', join(directory, 'x'), '--endpoint', 'http://x'], '--endpoint must be an https URL'],
      [['--from', from, '--to', join(directory, 'x'), '--authority', other], '--authority needs --endpoint'],
      [['--from', from, '--to', join(directory, 'x'), '--abandon'], 'it is not being moved'],
      [['--frob'], "Unknown option '--frob'"],
    ] as const) {
      const { exitCode, output } = await nodekeeper('move', ...args);
      expect({ args, exitCode, output }).toEqual({ args, exitCode: 1, output: expect.stringContaining(expected) });
      expect(output.split('\n'), output).toHaveLength(1);
    }
    await second.stop();
    expect(await nodekeeper('move', '--from', from, '--to', join(directory, 'full'))).toEqual({
      exitCode: 1,
      output: `nodekeeper move: ${join(directory, 'full')} is not empty: name another destination`,
    });
    expect(await create(local, 'accepted')).toBe(201);
  });
});
