/** The agent as a service of Windows, under Wine. docs/agent.md lists what Wine cannot show. */
import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from '../../agent/adapters/windows/preshutdown.ts';
import { buildWindowsAgent } from '../../scripts/build-agent.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';
import { drivePath, koffiArchive, startWine, type Wine, windowsPath, wineMissing } from '../support/wine.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVICE = 'nodekeeper-agent';
const PROBE = 'nodekeeper-probe';
const NODE_NAME = 'win-1';
/** Stands for the preshutdown control, which no program can send. */
const CONTROL = 200;
const RUNNING = 4;
const STOP_PENDING = 3;
const STOPPED = 1;
const SOON = { withinMs: 60_000, everyMs: 250 };
const missing = wineMissing();

describe.skipIf(missing !== undefined)(`the agent on Windows (skipped: ${missing})`, { timeout: 180_000 }, () => {
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

  const agent = (...args: readonly string[]) => wine.node(windowsPath(join(programs, 'nodekeeper-agent.mjs')), ...args);
  const install = (...args: readonly string[]) =>
    agent(
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
    // An order of another type.
    const add = ['reg', 'add', `HKLM\\${PRESHUTDOWN_KEY}`, '/v', PRESHUTDOWN_ORDER, '/t', 'REG_SZ', '/d', 'x', '/f'];
    await wine.run(...add);
    const wrongType = await install();
    expect(wrongType.output).toMatch(/^nodekeeper-agent: .*PreshutdownOrder has type 1, expected 7: .*\n$/);
    expect([wrongType.exitCode, ...nothing()]).toEqual([1, false, false]);
    await wine.call('removeRegistryValue', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER);
  });

  it('is installed, registers, is Ready, and shuts down as a service before the machine does', async () => {
    const create = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', '--nodes', NODE_NAME];
    const { stdout } = await promisify(execFile)(process.execPath, [...create, '--kubeconfig', local.kubeconfig]);
    writeFileSync(join(folder, 'token'), stdout.trim());
    await wine.call('writeRegistryTexts', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER, ['UsoSvc', 'RpcSs']);
    const installed = await install('--depends-on', 'RpcSs,EventLog', '--no-start');
    expect(installed).toMatchObject({ exitCode: 0, output: expect.stringContaining('installed: ') });
    expect(await install()).toMatchObject({ exitCode: 1, output: expect.stringMatching(/^.*exists already; .*\n$/) });
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
      containerRuntimeVersion: 'none://1.0.0',
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

    await wine.call('control', SERVICE, CONTROL);
    const pending = await wine.call('status', SERVICE);
    expect(pending).toMatchObject({ state: STOP_PENDING, accepted: 0 });
    expect(pending.waitHint).toBeGreaterThanOrEqual(3_000);
    await until(async () => (await wine.call('status', SERVICE)).state === STOPPED, SOON);
    const after = await nodeWith((each) => readyOf(each)?.status === 'False');
    expect(readyOf(after)?.message).toBe('node is shutting down');
    expect(log()).not.toMatch(/"level":"error"/);
    expect(existsSync(drivePath('ProgramData/nodekeeper/graceful_node_shutdown_state'))).toBe(true);
  });

  it('stops when it is asked to, and is removed without a trace', async () => {
    await wine.run('sc', 'start', SERVICE);
    await until(async () => (await wine.call('status', SERVICE)).state === RUNNING, SOON);
    expect(await agent('uninstall', '--purge')).toMatchObject({ exitCode: 0, output: 'removed\n' });
    expect(await wine.call('serviceExists', SERVICE)).toBe(false);
    expect(await wine.call('registryTexts', PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER)).toEqual(['UsoSvc', 'RpcSs']);
    expect(existsSync(drivePath('Program Files/nodekeeper'))).toBe(false);
    expect(existsSync(drivePath('ProgramData/nodekeeper'))).toBe(false);
  });
});
