/** The agent as a service of Windows, under Wine. docs/agent.md lists what Wine cannot show. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { updateFiles } from '../../agent/adapters/updates/update-files.ts';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from '../../agent/adapters/windows/preshutdown.ts';
import { InstalledVersions } from '../../agent/app/updates/installed-versions.ts';
import { buildAgent, buildWindowsAgent } from '../../scripts/build-agent.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';
import { drivePath, koffiArchive, replacing, startWine, type Wine, windowsPath, wineMissing } from '../support/wine.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RELEASE = join(ROOT, 'scripts/agent-release.ts');
const SERVICE = 'nodekeeper-agent';
const LOW_SECONDS = 4;
const PROBE = 'nodekeeper-probe';
const NODE_NAME = 'win-1';
/** Stands for the preshutdown control, which no program can send. */
const CONTROL = 200;
const STOPPED = 1;
const RUNNING = 4;
const STOP_PENDING = 3;
const SOON = { withinMs: 60_000, everyMs: 250 };
const missing = wineMissing();

describe.skipIf(missing !== undefined)(`the agent on Windows (skipped: ${missing})`, { timeout: 300_000 }, () => {
  let folder: string;
  let programs: string;
  let wine: Wine;
  let local: LocalForTest;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nodekeeper windows '));
    programs = join(folder, 'the build');
    // A run that was ended by force leaves them.
    rmSync(drivePath('Program Files/nodekeeper'), { recursive: true, force: true });
    rmSync(drivePath('ProgramData/nodekeeper'), { recursive: true, force: true });
    [local] = await Promise.all([startLocalForTest({ nodes: 0 }), buildWindowsAgent(programs, koffiArchive())]);
    wine = await startWine(programs, folder);
    for (const name of [SERVICE, PROBE]) {
      if (await wine.call('serviceExists', name)) await wine.call('removeService', name);
    }
    await wine.call('removeRegistryValue', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
  }, 180_000);

  afterAll(async () => {
    await wine?.stop();
    await local?.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  const agentWith = (options: readonly string[], ...args: readonly string[]) =>
    wine.node(...options, windowsPath(join(programs, 'nodekeeper-agent.mjs')), ...args);
  const agent = (...args: readonly string[]) => agentWith([], ...args);
  const install = (...args: readonly string[]) => installWith([], ...args);
  const installWith = (options: readonly string[], ...args: readonly string[]) =>
    agentWith(
      options,
      'install',
      '--endpoint',
      local.access.url,
      '--bootstrap-token-file',
      windowsPath(join(folder, 'token')),
      '--certificate-authority',
      windowsPath(join(folder, 'ca.pem')),
      '--node-name',
      NODE_NAME,
      ...args,
    );
  const nodeWith = (is: (node: KubeNode) => boolean): Promise<KubeNode> =>
    until(async () => {
      const answer = await local.client.send({ method: 'GET', path: `/api/v1/nodes/${NODE_NAME}` });
      const node = answer.kind === 'answered' && answer.status === 200 ? (answer.body as KubeNode) : undefined;
      return node !== undefined && is(node) ? node : undefined;
    }, SOON);
  const readyOf = (node: KubeNode) => node.status?.conditions?.find(({ type }) => type === 'Ready');
  const log = (): string => readFileSync(drivePath('ProgramData/nodekeeper/agent.log'), 'utf8');

  /** Three phases instead of those of the installation. */
  function configurePhases(): void {
    const file = drivePath('ProgramData/nodekeeper/agent.yaml');
    const phases = [
      { priority: 0, shutdownGracePeriodSeconds: LOW_SECONDS },
      { priority: 1_000, shutdownGracePeriodSeconds: 10 },
      { priority: 100_000, shutdownGracePeriodSeconds: 10 },
    ];
    const [text] = readFileSync(file, 'utf8').split('shutdownGracePeriod', 1);
    // Another agent of this machine may have the default port of /healthz.
    const often = (text ?? '').replace('---', 'updateCheckPeriod: 10s\r\nhealthzPort: 18248\r\n---');
    writeFileSync(file, `${often}shutdownGracePeriodByPodPriority: ${JSON.stringify(phases)}\n`);
  }

  /** Offers this version of the agent to all nodes. Returns what ends the download server. */
  async function release(version: string): Promise<Server> {
    const built = readFileSync(await buildAgent(join(folder, version), version));
    const server = createServer((_, response) => response.end(built));
    const port = await listenOnLoopback(server);
    const url = `http://127.0.0.1:${port}/agent.mjs`;
    const file = ['--file', join(folder, version, 'nodekeeper-agent.mjs')];
    const { stdout } = await promisify(execFile)(process.execPath, [RELEASE, ...file, '--url', url, '--key', key()]);
    await post('/apis/nodekeeper.dev/v1alpha1/agentreleases', parse(stdout));
    return server;
  }
  const key = (): string => join(folder, 'release key');
  const agents = drivePath('ProgramData/nodekeeper/agents');
  const versions = new InstalledVersions(updateFiles(agents, false));
  async function tryVersion(version: string, program: string): Promise<void> {
    const sha256 = createHash('sha256').update(program).digest('hex');
    async function* content() {
      yield Buffer.from(program);
    }
    await versions.tryNext(await versions.store(sha256, content()), { version, sha256 });
  }

  const post = async (path: string, body: object): Promise<void> => {
    const answer = await local.client.send({ method: 'POST', path, body });
    if (answer.kind !== 'answered' || answer.status !== 201) throw new Error(JSON.stringify(answer));
  };
  const podNamed = async (name: string): Promise<KubePod> => {
    const answer = await local.client.send({ method: 'GET', path: `/api/v1/namespaces/default/pods/${name}` });
    if (answer.kind !== 'answered' || answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.body as KubePod;
  };
  const podWith = (name: string, is: (pod: KubePod) => boolean): Promise<KubePod> =>
    until(async () => {
      const pod = await podNamed(name);
      return is(pod) ? pod : undefined;
    }, SOON).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${JSON.stringify((await podNamed(name)).status)}\n${log().slice(-4_000)}`);
    });
  const startPod = (name: string, spec: Record<string, unknown>, containers: readonly Record<string, unknown>[]) =>
    post('/api/v1/namespaces/default/pods', {
      metadata: { name },
      spec: {
        nodeName: NODE_NAME,
        restartPolicy: 'Never',
        tolerations: [{ operator: 'Exists' }],
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 60,
        ...spec,
        containers: containers.map((each, index) => ({ name: `c${index}`, image: 'none', ...each })),
      },
    });
  const cmd = (script: string) => ['cmd', '/c', script];
  const waiting = { command: ['ping', '-n', '900', '127.0.0.1'] };
  const outputOf = async (name: string): Promise<string> => {
    const { uid } = (await podNamed(name)).metadata;
    return readFileSync(drivePath(`ProgramData/nodekeeper/pods/${uid}/c0.0.log`), 'utf8').replaceAll('\r\n', '\n');
  };

  /** Pods of three priorities, and what a pod on Windows has and has not. */
  async function runPods(): Promise<void> {
    for (const [name, value] of [
      ['mid', 1_000],
      ['high', 100_000],
    ] as const) {
      await post('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name }, value });
    }
    await post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'greeting' }, data: { text: 'hello' } });
    const volumes = [{ name: 'greeting', configMap: { name: 'greeting' } }];
    await startPod('short', { volumes }, [
      {
        command: cmd('type %CONTAINER_SANDBOX_MOUNT_POINT%\\etc\\greeting\\text & echo  %WHO% & exit 3'),
        env: [{ name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
        volumeMounts: [{ name: 'greeting', mountPath: '/etc/greeting' }],
      },
    ]);
    await startPod('linux', { securityContext: { runAsUser: 1 } }, [waiting]);
    await startPod('other', { os: { name: 'linux' } }, [waiting]);
    // Wine cannot ask a program to end, so each container has its whole period: the smaller of its own and its phase's.
    await startPod('low', {}, [waiting]);
    const hook = { preStop: { exec: { command: cmd('echo hook of %WHO%') } } };
    const last = { ...waiting, env: [{ name: 'WHO', value: 'mid' }], lifecycle: hook };
    const mid = { priorityClassName: 'mid', terminationGracePeriodSeconds: 2 };
    await startPod('mid', mid, [last, waiting, waiting]);
    const readinessProbe = { exec: { command: cmd('exit 0') }, periodSeconds: 1 };
    const high = { priorityClassName: 'high', terminationGracePeriodSeconds: 1 };
    await startPod('high', high, [{ ...waiting, readinessProbe }]);
    const running = (pod: KubePod): boolean =>
      pod.status?.containerStatuses?.every(({ state, ready }) => state?.running !== undefined && ready) === true;
    for (const name of ['low', 'mid', 'high']) await podWith(name, running);
    const short = await podWith('short', ({ status }) => status?.phase === 'Failed');
    expect(short.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 3, reason: 'Error' });
    expect(await outputOf('short')).toMatch(/^hello *win-1 *\n$/);
    const refused = await podWith('linux', ({ status }) => {
      return status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError';
    });
    expect(refused.status?.containerStatuses?.[0]?.state?.waiting?.message).toBe(
      'spec.securityContext.runAsUser has no meaning on Windows',
    );
    const { status } = await podWith('other', (pod) => pod.status?.phase === 'Failed');
    expect([status?.reason, status?.message]).toEqual([
      'PodOSNotSupported',
      "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS",
    ]);
  }

  it('reads and writes what the service control manager and the registry know', async () => {
    const name = PROBE;
    const definition = {
      name,
      displayName: 'A probe',
      description: 'of the tests',
      commandLine: '"C:\\no such\\program.exe" --flag',
      dependencies: ['RpcSs', 'EventLog'],
      preshutdownTimeoutMs: 50_000,
    };
    expect(await wine.call('serviceExists', name)).toBe(false);
    await wine.call('createService', definition);
    expect(await wine.call('serviceExists', name)).toBe(true);
    expect(await wine.call('serviceDependencies', name)).toEqual(['RpcSs', 'EventLog']);
    expect(await wine.call('preshutdownTimeoutMs', name)).toBe(50_000);
    await wine.call('setPreshutdownTimeout', name, 240_000);
    expect(await wine.call('preshutdownTimeoutMs', name)).toBe(240_000);
    await expect(wine.call('createService', definition)).rejects.toThrow(/WindowsError: .*exists already \(1073\)/);
    await wine.call('removeService', name);
    await expect(wine.call('preshutdownTimeoutMs', name)).rejects.toThrow(/does not exist \(1060\)/);

    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, 'NodekeeperTest')).toBeNull();
    expect(await wine.call('registryTexts', `${PRESHUTDOWN_KEY}\\NoSuchKey`, 'x')).toBeNull();
    await wine.call('writeRegistryTexts', PRESHUTDOWN_KEY, 'NodekeeperTest', ['a', 'ü b']);
    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, 'NodekeeperTest')).toEqual(['a', 'ü b']);
    await expect(wine.call('registryText', PRESHUTDOWN_KEY, 'NodekeeperTest')).rejects.toThrow(
      /has type 7, expected 1/,
    );
    await wine.call('writeRegistryTexts', PRESHUTDOWN_KEY, 'NodekeeperTest', []);
    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, 'NodekeeperTest')).toEqual([]);
    await wine.call('removeRegistryValue', PRESHUTDOWN_KEY, 'NodekeeperTest');
    await wine.call('removeRegistryValue', PRESHUTDOWN_KEY, 'NodekeeperTest');
  });

  it('measures the machine', async () => {
    const { facts, use, address } = await wine.call('machine', 'C:\\');
    expect(facts).toMatchObject({ operatingSystem: 'windows', architecture: 'amd64', swapBytes: 0 });
    expect(facts.osLabels?.['node.kubernetes.io/windows-build']).toMatch(/^10\.0\.\d+$/);
    expect(facts.kernelVersion).toMatch(/^10\.0\.\d+/);
    expect(facts.osImage).toMatch(/Windows/);
    expect(facts.cpuCores).toBeGreaterThan(0);
    expect(use.memoryAvailableBytes).toBeGreaterThan(0);
    expect(use.memoryAvailableBytes).toBeLessThan(facts.memoryBytes);
    expect(use.nodeFs.availableBytes).toBeGreaterThan(0);
    expect(use.nodeFs.availableBytes).toBeLessThanOrEqual(use.nodeFs.capacityBytes);
    expect(use.pidsUsed).toBeGreaterThan(1);
    expect(use.pidsUsed).toBeLessThan(use.pidsMax);
    expect(use.cpuBusySeconds).toBeGreaterThan(0);
    expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  it('runs processes in jobs: with output, exit code, and an end for all of them', async () => {
    const output = join(folder, 'job output.log');
    const script = 'console.log(process.env.GREETING, process.argv[1], process.cwd()); process.exitCode = 7';
    const words = ['C:\\node\\node.exe', '-e', script, 'c "d\\" e\\'];
    const one = await wine.call('startJob', { memoryBytes: 2 ** 30, processesMax: 10 }, windowsPath(output), words);
    await until(async () => (await wine.call('jobState', one)).exitCode === 7, SOON);
    expect(readFileSync(output, 'utf8')).toBe('a "b" ü c "d\\" e\\ C:\\\n');
    // The code of a process that runs is 259 for Windows.
    const odd = await wine.call('startJob', {}, windowsPath(output), ['cmd', '/c', 'exit 259']);
    await until(async () => (await wine.call('jobState', odd)).exitCode === 259, SOON);

    const ping = 'ping -n 300 127.0.0.1 >nul';
    const many = await wine.call('startJob', {}, windowsPath(output), ['cmd', '/c', ping]);
    // As a probe or a hook: limits and the end of the container apply to it, too.
    const further = await wine.call('spawnInJob', many, ['ping', '-n', '300', '127.0.0.1']);
    expect((await wine.call('jobState', many)).pids).toContain(further);
    const { pids } = await until(async () => {
      const state = await wine.call('jobState', many);
      return state.pids.length >= 3 ? state : undefined;
    }, SOON);
    await wine.call('closeJob', many);
    await until(async () => !(await wine.call('processIds')).some((pid) => pids.includes(pid)), SOON);
    await expect(wine.call('startJob', {}, windowsPath(output), ['no-such-program'])).rejects.toThrow(
      /spawn no-such-program: not found \(2\)/,
    );
  });

  it('refuses an installation in one line, and leaves nothing of it', async () => {
    const nothing = () => [
      existsSync(drivePath('Program Files/nodekeeper')),
      existsSync(drivePath('ProgramData/nodekeeper')),
    ];
    const noToken = await install();
    expect(noToken).toMatchObject({ exitCode: 1, output: expect.stringMatching(/^nodekeeper-agent: .*token.*\n$/) });
    expect(nothing()).toEqual([false, false]);
    writeFileSync(join(folder, 'token'), 'a.b');
    writeFileSync(join(folder, 'ca.pem'), local.access.ca ?? '');
    /** One line, exit code 1, and nothing of it is left. */
    const refused = async (options: readonly string[], message: RegExp, ...args: readonly string[]): Promise<void> => {
      const { exitCode, output } = await installWith(options, ...args);
      expect(output).toMatch(/^nodekeeper-agent: .*\n$/);
      expect(output).toMatch(message);
      expect([exitCode, ...nothing(), await wine.call('serviceExists', SERVICE)]).toEqual([1, false, false, false]);
    };
    // An order of another type.
    const add = ['reg', 'add', `HKLM\\${PRESHUTDOWN_KEY}`, '/v', PRESHUTDOWN_ORDER, '/t', 'REG_SZ', '/d', 'x', '/f'];
    await wine.run(...add);
    await refused([], /PreshutdownOrder has type 1, expected 7: correct or remove/);
    await wine.call('removeRegistryValue', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
    await refused([], /node name "not a name": .*; nothing was installed$/m, '--node-name', 'Not A Name');
    // What Windows answers to who is no administrator.
    const noRights = replacing('OpenSCManagerW', '(...args) => (args[2] === 1 ? real(...args) : refuse(5))');
    await refused([noRights], /: this needs an administrator: open the command prompt as administrator$/m);
    expect(await agentWith([noRights], 'uninstall')).toMatchObject({
      exitCode: 1,
      output: 'nodekeeper-agent: this needs an administrator: open the command prompt as administrator\n',
    });
    const refusals: readonly (readonly [string, string, RegExp])[] = [
      ['CreateDirectoryW', '() => refuse(183)', /nodekeeper: exists already \(183\); nothing was installed/],
      ['CreateServiceW', '() => refuse(1072)', /the service is marked for deletion \(1072\); nothing was installed/],
      [
        'ChangeServiceConfig2W',
        '() => refuse(87)',
        /ChangeServiceConfig2W: error 87 of Windows; nothing was installed/,
      ],
      [
        'QueryServiceConfig2W',
        '(...args) => { const done = real(...args); args[2].writeUInt32LE(9_000); return done; }',
        /Windows refuses a preshutdown time-out of 50000 ms: it stored 9000 ms; nothing was installed/,
      ],
      ['StartServiceW', '() => refuse(1053)', /the service did not answer in time \(1053\); nothing was installed/],
      ['StartServiceW', '() => true', /service nodekeeper-agent stopped at its start; nothing was installed/],
    ];
    for (const [name, act, message] of refusals) await refused([replacing(name, act)], message);
    // The configuration of a user who may become an administrator by it.
    mkdirSync(drivePath('ProgramData/nodekeeper'));
    const foreign = await install();
    expect(foreign.output).toMatch(/^nodekeeper-agent: C:\\ProgramData\\nodekeeper exists: .* --keep-data\n$/);
    expect([foreign.exitCode, ...nothing()]).toEqual([1, false, true]);
    rmdirSync(drivePath('ProgramData/nodekeeper'));
    // Another service has the name.
    const other = { name: SERVICE, displayName: 'x', description: 'x', dependencies: [], preshutdownTimeoutMs: 1 };
    await wine.call('createService', { ...other, commandLine: '"C:\\an other\\x.exe" -x' });
    const taken = 'service nodekeeper-agent exists already, and is another program: "C:\\an other\\x.exe" -x';
    for (const { exitCode, output } of [await install(), await agent('uninstall', '--purge')]) {
      expect([exitCode, output, ...nothing()]).toEqual([1, `nodekeeper-agent: ${taken}\n`, false, false]);
    }
    expect(await wine.call('serviceExists', SERVICE)).toBe(true);
    await wine.call('removeService', SERVICE);
  });

  it('is installed, registers, is Ready, and shuts down as a service before the machine does', async () => {
    const create = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', NODE_NAME];
    const { stdout } = await promisify(execFile)(process.execPath, [...create, '--kubeconfig', local.kubeconfig]);
    writeFileSync(join(folder, 'token'), stdout.trim());
    await wine.call('writeRegistryTexts', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER, ['UsoSvc', 'RpcSs']);
    await promisify(execFile)(process.execPath, [RELEASE, '--new-key', key()]);
    const updateKey = ['--update-key', windowsPath(`${key()}.pub`)];
    const installed = await install('--depends-on', 'RpcSs,EventLog', '--no-start', ...updateKey);
    expect(installed).toMatchObject({ exitCode: 0, output: expect.stringContaining('installed: ') });
    expect(await install()).toMatchObject({ exitCode: 1, output: expect.stringMatching(/^.*exists already; .*\n$/) });
    configurePhases();
    appendFileSync(drivePath('ProgramData/nodekeeper/agent.env'), `NODEKEEPER_PRESHUTDOWN_CONTROL=${CONTROL}\r\n`);
    await wine.run('sc', 'start', SERVICE);
    const node = await nodeWith((each) => readyOf(each)?.status === 'True').catch((error: Error) => {
      throw new Error(`${error.message}\n${log()}`);
    });
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/os': 'windows',
      'kubernetes.io/arch': 'amd64',
      'node.kubernetes.io/windows-build': expect.stringMatching(/^10\.0\.\d+$/),
    });
    expect(node.status?.nodeInfo).toMatchObject({
      operatingSystem: 'windows',
      containerRuntimeVersion: 'exec://1.0.0',
    });
    expect(node.status?.conditions?.map(({ type, status }) => `${type} ${status}`).sort()).toEqual([
      'DiskPressure False',
      'MemoryPressure False',
      'PIDPressure False',
      'Ready True',
    ]);
    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER)).toEqual([
      'UsoSvc',
      SERVICE,
      'RpcSs',
      'EventLog',
    ]);
    expect((await wine.run('sc', 'query', SERVICE)).output).toMatch(/STATE +: 4 +RUNNING/);

    const withoutPods = await wine.call('processIds');
    await runPods();
    const asked = performance.now();
    await wine.call('control', SERVICE, CONTROL);
    const pending = await wine.call('status', SERVICE);
    expect(pending).toMatchObject({ state: STOP_PENDING, accepted: 0 });
    expect(pending.waitHint).toBeGreaterThanOrEqual(3_000);
    // As a person sees it.
    const points: number[] = [];
    await until(async () => {
      const { output } = await wine.run('sc', 'query', SERVICE);
      const point = /CHECKPOINT +: 0x(\w+)/.exec(output)?.[1];
      if (output.includes('STOP_PENDING') && point !== undefined) points.push(Number.parseInt(point, 16));
      return output.includes('STOPPED');
    }, SOON);
    expect(points).toEqual(points.toSorted((one, other) => one - other));
    expect(new Set(points).size).toBeGreaterThan(2);
    const tookMs = performance.now() - asked;
    expect(tookMs).toBeGreaterThanOrEqual((LOW_SECONDS + 2 + 1) * 1_000);
    await until(async () => (await wine.call('processIds')).every((pid) => withoutPods.includes(pid)), SOON);
    expect(await outputOf('mid')).toContain('hook of mid');
    const after = await nodeWith((each) => readyOf(each)?.status === 'False');
    expect(readyOf(after)?.message).toBe('node is shutting down');
    const ends = await Promise.all(
      ['low', 'mid', 'high'].map(async (name) => {
        const { status } = await podWith(name, ({ status: each }) => each?.phase === 'Failed');
        expect(status).toMatchObject({
          reason: 'Terminated',
          message: 'Pod was terminated in response to imminent node shutdown.',
        });
        const times = status?.containerStatuses?.map(({ state }) => Date.parse(state?.terminated?.finishedAt ?? ''));
        return { first: Math.min(...(times ?? [])), last: Math.max(...(times ?? [])) };
      }),
    );
    const [low, mid, high] = ends;
    expect(mid!.first).toBeGreaterThanOrEqual(low!.last);
    expect(high!.first).toBeGreaterThanOrEqual(mid!.last);
    expect(log()).not.toMatch(/"level":"error"/);
    expect(existsSync(drivePath('ProgramData/nodekeeper/graceful_node_shutdown_state'))).toBe(true);
  });

  it('has a doctor, and a check of the last shutdown', async () => {
    const config = ['--config', 'C:\\ProgramData\\nodekeeper\\agent.yaml'];
    const { output } = await agent('doctor', ...config);
    expect(output).toMatch(/^ok +configuration +node win-1, runtime exec$/m);
    expect(output).toMatch(/^ok +token +accepted, Node win-1 exists$/m);
    expect(output).toMatch(/^ok +runtime +exec, processes in Job objects$/m);
    expect(output).toMatch(/^warning +agent +does not run: .* Start it: sc start nodekeeper-agent$/m);
    const shutdown = await agent('doctor', '--windows-shutdown', ...config);
    expect(shutdown.output).toMatch(/^ok +shutdown +Windows waits 50 s for the service$/m);
    expect(shutdown.output).toMatch(/^ok +shutdown +nodekeeper-agent is before RpcSs, EventLog in PreshutdownOrder$/m);
    expect(shutdown.output).toMatch(
      /^warning +last shutdown +pods were terminated at .* after this start of the machine/m,
    );
  });

  it('logs one error when it is no service, and leaves no process of a pod behind when it is killed', async () => {
    const program = windowsPath(join(programs, 'nodekeeper-agent.mjs'));
    const startAgent = (...options: readonly string[]) =>
      wine.start(...options, program, '--config', 'C:\\ProgramData\\nodekeeper\\agent.yaml');
    const first = startAgent();
    await nodeWith((each) => readyOf(each)?.status === 'True').catch((error: Error) => {
      throw new Error(`${error.message}\n${first.output()}`);
    });
    expect(first.output().match(/"level":"error".*/g)).toEqual([
      '"level":"error","message":"Failed to start node shutdown manager","error":"kubelet is NOT running as a Windows service"}',
    ]);
    const withoutPods = await wine.call('processIds');
    await startPod('kept', {}, [waiting]);
    await podWith('kept', ({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined);
    const ofPods = (await wine.call('processIds')).filter((pid) => !withoutPods.includes(pid));
    expect(ofPods.length).toBeGreaterThan(0);
    first.kill();
    await until(async () => !(await wine.call('processIds')).some((pid) => ofPods.includes(pid)), SOON);
    const second = startAgent(replacing('AssignProcessToJobObject', '() => refuse(5)'));
    const kept = await podWith('kept', ({ status }) => status?.phase === 'Failed');
    expect(kept.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 137,
      reason: 'ContainerStatusUnknown',
    });
    // A process that cannot be put into its job is terminated before it runs.
    const withoutJobs = await wine.call('processIds');
    await startPod('jobless', {}, [waiting]);
    const jobless = await podWith('jobless', ({ status }) => status?.phase === 'Failed');
    expect(jobless.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 126,
      reason: 'ContainerCannotRun',
      message: expect.stringContaining('AssignProcessToJobObject'),
    });
    await until(async () => (await wine.call('processIds')).every((pid) => withoutJobs.includes(pid)), SOON);
    second.kill();
  });

  it('updates itself, and returns from a version that does not run', async () => {
    const server = await release('0.2.0');
    const others = await wine.call('processIds');
    try {
      await wine.run('sc', 'start', SERVICE);
      await until(async () => existsSync(join(agents, 'current')), SOON);
      await until(async () => (await wine.call('processIds')).every((pid) => others.includes(pid)), SOON);
    } finally {
      server.close();
    }
    // Windows would start it again. Wine does not see that it has ended, but starts it with the machine.
    await wine.stop();
    wine = await startWine(programs, folder);
    await wine.run('sc', 'start', SERVICE);
    await nodeWith((each) => each.status?.nodeInfo?.kubeletVersion?.endsWith('-nodekeeper.0.2.0') === true);
    await until(async () => !existsSync(join(agents, 'trial.json')), SOON);
    const current = await updateFiles(agents, false).readLink('current');
    expect(current).toMatch(/^agent-0\.2\.0-[0-9a-f]+\.mjs$/);
    await wine.run('sc', 'stop', SERVICE);
    await until(async () => (await wine.call('status', SERVICE)).state === STOPPED, SOON);

    // The trial of a version that blocks ends after a second.
    const hurry = `
      const threads = process.getBuiltinModule('node:worker_threads');
      const { Worker } = threads;
      threads.Worker = class extends Worker {
        constructor(code, { workerData, ...options }) {
          super(code, { ...options, workerData: { ...workerData, trialMs: 1_000 } });
        }
      };`;
    const startAgent = () =>
      wine.node(
        `--import=data:text/javascript,${encodeURIComponent(hurry)}`,
        '--env-file=C:\\ProgramData\\nodekeeper\\agent.env',
        'C:\\Program Files\\nodekeeper\\start-agent.mjs',
        '--config=C:\\ProgramData\\nodekeeper\\agent.yaml',
      );
    await tryVersion('0.3.0', 'for (;;) {}');
    expect((await startAgent()).exitCode).not.toBe(0);
    const trial = await versions.trial();
    expect(trial).toMatchObject({ version: '0.3.0', starts: 1, previous: current });
    await versions.abandon(trial!);
    await tryVersion('0.4.0', 'this is no program');
    expect((await startAgent()).exitCode).toBe(1);
    expect(await versions.failed()).toMatchObject([
      { version: '0.4.0', message: expect.stringMatching(/^it does not start: /) },
    ]);
  });

  it('stops when it is asked to, and is removed without a trace', async () => {
    await wine.run('sc', 'start', SERVICE);
    await until(async () => (await wine.call('status', SERVICE)).state === RUNNING, SOON);
    const data = 'C:\\ProgramData\\nodekeeper';
    expect(await agent('uninstall')).toMatchObject({
      exitCode: 0,
      output: `removed; kept ${data}, --purge removes it\n`,
    });
    // The file of a user who may become an administrator by it.
    const owned = `(...args) => {
      const done = real(...args);
      const at = args[2].readUInt32LE(4);
      const last = at + 4 + 4 * args[2][at + 1];
      if (args[0].toString('utf16le').includes('agent.yaml')) args[2].writeUInt32LE(4242, last);
      return done;
    }`;
    const foreign = await agentWith([replacing('GetFileSecurityW', owned)], 'install', '--keep-data');
    expect(foreign.output).toMatch(/^nodekeeper-agent: .*\\agent.yaml belongs to S-1-.*-4242, not to .*\n$/);
    expect([foreign.exitCode, existsSync(drivePath('Program Files/nodekeeper'))]).toEqual([1, false]);
    expect(await agent('install', '--keep-data')).toMatchObject({
      exitCode: 0,
      output: `installed: C:\\Program Files\\nodekeeper, ${data}; kept ${data}\\agent.yaml; the service runs\n`,
    });
    expect(await wine.call('status', SERVICE)).toMatchObject({ state: RUNNING });
    // The version that was installed now, not the one of an update.
    expect(existsSync(join(agents, 'current'))).toBe(false);
    expect(await agent('uninstall', '--purge')).toMatchObject({ exitCode: 0, output: 'removed\n' });
    expect(await wine.call('serviceExists', SERVICE)).toBe(false);
    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER)).toEqual(['UsoSvc', 'RpcSs']);
    expect(existsSync(drivePath('Program Files/nodekeeper'))).toBe(false);
    expect(existsSync(drivePath('ProgramData/nodekeeper'))).toBe(false);
  });
});
