/** Registry, services and facts of Windows over calls in memory. `test/agent/windows.test.ts` has those of Wine. */
import { freemem, hostname, networkInterfaces, release, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { memoryWindows } from '../../../test/support/memory-windows-native.ts';
import { readPreshutdown, readShutdownHistory } from '../doctor/measure-windows.ts';
import { addressesOf } from '../system/addresses.ts';
import { ADMINISTRATORS_SID, makePrivateDirectory, ownerOf } from './file-security.ts';
import { foreign, programDirectory, required, WindowsError, wide, windowsLibraries } from './foreign.ts';
import {
  RegistryTypeError,
  registryNumber,
  registryText,
  registryTexts,
  removeRegistryValue,
  writeRegistryTexts,
} from './registry.ts';
import {
  checkMayInstall,
  createService,
  preshutdownTimeoutMs,
  removeService,
  type ServiceDefinition,
  serviceCommand,
  serviceDependencies,
  serviceExists,
  serviceState,
  setPreshutdownTimeout,
  startService,
  stopService,
} from './service-database.ts';
import { bootId, WindowsMachine } from './windows-machine.ts';

const { memory, program } = memoryWindows();
const { windows } = memory;

const nothingIsOpen = (): void => expect([...windows.open.values()]).toEqual([]);
const key = (path: string) => {
  const values = windows.keys.get(path) ?? new Map();
  windows.keys.set(path, values);
  return values;
};
const text = (value: string): Buffer => Buffer.from(value, 'utf16le');
const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

describe('the native part', () => {
  it('is that beside the program, and is loaded once', () => {
    expect(programDirectory()).toBe(program);
    expect(foreign()).toBe(memory.koffi);
    expect(windowsLibraries()).toBe(windowsLibraries());
    vi.stubEnv('NODEKEEPER_PROGRAM', undefined);
    expect(programDirectory()).toBe(dirname(fileURLToPath(new URL('./foreign.ts', import.meta.url))));
    expect(foreign()).toBe(memory.koffi);
    vi.stubEnv('NODEKEEPER_PROGRAM', program);
  });

  it.each([null, false, 0n, 2n ** 64n - 1n])('a result of %s is an error with the code of Windows', (result) => {
    windows.failures.set('OpenSCManagerW', 5);
    expect(checkMayInstall).toThrow('OpenSCManagerW: access is denied (5)');
    expect(() => required('some call', result)).toThrow(new WindowsError('some call', 5));
  });

  it.each([true, 1n, 7n, 0])('a result of %s is none', (result) => {
    expect(required('some call', result)).toBe(result);
  });

  it.each([
    [2, 'x: not found (2)'],
    [1060, 'x: the service does not exist (1060)'],
    [4711, 'x: error 4711 of Windows'],
  ])('the code %i has a meaning', (code, message) => {
    expect(new WindowsError('x', code)).toMatchObject({ name: 'WindowsError', code, message });
  });

  it('a text is UTF-16 with a null', () => {
    expect(wide('aü')).toEqual(Buffer.from([0x61, 0, 0xfc, 0, 0, 0]));
  });
});

describe('a value of the registry', () => {
  const PATH = 'SYSTEM\\Test';

  it('is absent without its key, or without a value', () => {
    expect([registryText(PATH, 'x'), registryTexts(PATH, 'x'), registryNumber(PATH, 'x')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    key(PATH);
    expect([registryText(PATH, 'x'), registryTexts(PATH, 'x'), registryNumber(PATH, 'x')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    nothingIsOpen();
  });

  it('is a text until its null, texts, or a number', () => {
    key(PATH)
      .set('text', { type: 1, bytes: text('one two\0rest\0') })
      .set('bare', { type: 1, bytes: text('bare') })
      .set('texts', { type: 7, bytes: text('a\0ü b\0\0') })
      .set('none', { type: 7, bytes: text('\0') })
      .set('number', { type: 4, bytes: number(4_000_000_000) });
    expect([registryText(PATH, 'text'), registryText(PATH, 'bare')]).toEqual(['one two', 'bare']);
    expect([registryTexts(PATH, 'texts'), registryTexts(PATH, 'none')]).toEqual([['a', 'ü b'], []]);
    expect(registryNumber(PATH, 'number')).toBe(4_000_000_000);
    nothingIsOpen();
  });

  it('of another type is refused, however long it is', () => {
    key(PATH)
      .set('text', { type: 1, bytes: text('a\0') })
      .set('long', { type: 3, bytes: Buffer.alloc(65_537) });
    expect(() => registryTexts(PATH, 'text')).toThrow(
      new RegistryTypeError('SYSTEM\\Test\\text has type 1, expected 7'),
    );
    expect(() => registryText(PATH, 'long')).toThrow('SYSTEM\\Test\\long has type 3, expected 1');
    nothingIsOpen();
  });

  it('longer than 64 KiB is refused', () => {
    key(PATH)
      .set('long', { type: 1, bytes: Buffer.alloc(65_537) })
      .set('longest', { type: 1, bytes: text('x'.repeat(32_768)) });
    expect(() => registryText(PATH, 'long')).toThrow(new WindowsError('SYSTEM\\Test\\long', 234));
    expect(registryText(PATH, 'longest')).toHaveLength(32_768);
    nothingIsOpen();
  });

  it.each([
    ['RegOpenKeyExW', 'SYSTEM\\Test: access is denied (5)'],
    ['RegQueryValueExW', 'SYSTEM\\Test\\x: access is denied (5)'],
  ])('that cannot be read is an error: %s', (call, message) => {
    key(PATH);
    windows.failures.set(call, 5);
    expect(() => registryText(PATH, 'x')).toThrow(message);
    nothingIsOpen();
  });

  it('is written as texts, replaced and removed', () => {
    key(PATH);
    writeRegistryTexts(PATH, 'list', ['a', 'ü b']);
    expect(windows.keys.get(PATH)?.get('list')).toEqual({ type: 7, bytes: text('a\0ü b\0\0') });
    writeRegistryTexts(PATH, 'list', []);
    expect(windows.keys.get(PATH)?.get('list')?.bytes).toEqual(text('\0'));
    removeRegistryValue(PATH, 'list');
    expect(windows.keys.get(PATH)?.has('list')).toBe(false);
    removeRegistryValue(PATH, 'list');
    nothingIsOpen();
  });

  it.each(['RegSetValueExW', 'RegDeleteValueW'])('that cannot be changed is an error: %s', (call) => {
    const act = () => (call === 'RegSetValueExW' ? writeRegistryTexts(PATH, 'x', []) : removeRegistryValue(PATH, 'x'));
    expect(act).toThrow('SYSTEM\\Test: not found (2)');
    key(PATH);
    windows.failures.set(call, 5);
    expect(act).toThrow('SYSTEM\\Test\\x: access is denied (5)');
    nothingIsOpen();
  });
});

describe('a service', () => {
  const definition: ServiceDefinition = {
    name: 'agent',
    displayName: 'The agent',
    description: 'Keeps the node',
    commandLine: '"C:\\a b\\node.exe" agent.cjs',
    dependencies: ['RpcSs', 'EventLog'],
    preshutdownTimeoutMs: 50_000,
  };

  it('is created with all that is set, and read again', () => {
    expect(serviceExists('agent')).toBe(false);
    checkMayInstall();
    createService(definition);
    expect(windows.services.get('agent')).toEqual({
      settings: {
        display: 'The agent',
        access: 0xf01ff,
        type: 0x10,
        start: 2,
        errorControl: 1,
        group: null,
        tag: null,
        user: null,
        password: null,
        command: '"C:\\a b\\node.exe" agent.cjs',
        dependencies: ['RpcSs', 'EventLog'],
      },
      state: 1,
      preshutdownMs: 50_000,
      description: 'Keeps the node',
      restartWaitsMs: [5_000, 5_000, 30_000],
      failuresResetSeconds: 3_600,
    });
    expect([serviceExists('agent'), serviceCommand('agent')]).toEqual([true, definition.commandLine]);
    expect([preshutdownTimeoutMs('agent'), serviceState('agent')]).toEqual([50_000, 'stopped']);
    setPreshutdownTimeout('agent', 60_000);
    expect(preshutdownTimeoutMs('agent')).toBe(60_000);
    nothingIsOpen();
  });

  it('has no list of dependencies if there is none', () => {
    createService({ ...definition, dependencies: [] });
    expect(windows.services.get('agent')?.settings['dependencies']).toBeNull();
  });

  it('is not left half created', () => {
    windows.failures.set('ChangeServiceConfig2W', 5);
    expect(() => createService(definition)).toThrow('ChangeServiceConfig2W: access is denied (5)');
    expect(windows.services.size).toBe(0);
    nothingIsOpen();
  });

  it('is created once', () => {
    createService(definition);
    expect(() => createService(definition)).toThrow('service agent: the service exists already (1073)');
    nothingIsOpen();
  });

  it('starts when it is stopped, stops when it runs, and is removed', () => {
    createService(definition);
    stopService('agent');
    startService('agent');
    expect(serviceState('agent')).toBe('running');
    startService('agent');
    expect(windows.calls.filter((call) => !call.startsWith('open'))).toEqual(['control 1', 'start']);
    stopService('agent');
    expect(serviceState('agent')).toBe('stopped');
    windows.services.get('agent')!.state = 9;
    expect(serviceState('agent')).toBe('unknown');
    removeService('agent');
    expect(serviceExists('agent')).toBe(false);
    nothingIsOpen();
  });

  it.each<[string, () => unknown, string]>([
    ['OpenSCManagerW', () => serviceExists('agent'), 'OpenSCManagerW: access is denied (5)'],
    ['OpenServiceW', () => serviceExists('agent'), 'service agent: access is denied (5)'],
    ['QueryServiceConfigW', () => serviceCommand('agent'), 'QueryServiceConfigW: access is denied (5)'],
    ['QueryServiceConfig2W', () => preshutdownTimeoutMs('agent'), 'QueryServiceConfig2W: access is denied (5)'],
    ['ChangeServiceConfig2W', () => setPreshutdownTimeout('agent', 1), 'ChangeServiceConfig2W: access is denied (5)'],
    ['QueryServiceStatus', () => serviceState('agent'), 'QueryServiceStatus: access is denied (5)'],
    ['StartServiceW', () => startService('agent'), 'service agent: access is denied (5)'],
    ['ControlService', () => stopService('agent'), 'service agent: access is denied (5)'],
    ['DeleteService', () => removeService('agent'), 'service agent: access is denied (5)'],
    ['OpenSCManagerW', () => createService(definition), 'OpenSCManagerW: access is denied (5)'],
  ])('is an error when %s fails: %s', (call, act, message) => {
    createService(definition);
    windows.failures.set(call, 5);
    expect(act).toThrow(message);
    nothingIsOpen();
  });

  it.each([
    ['to be read', () => preshutdownTimeoutMs('agent'), 1],
    ['to be changed', () => setPreshutdownTimeout('agent', 1), 2],
    ['to be stopped', () => stopService('agent'), 0xf01ff],
  ])('is opened %s with that right alone', (_, act, access) => {
    createService(definition);
    act();
    expect(windows.calls[0]).toBe(`open agent ${access}`);
  });

  it('depends on services, not on groups', () => {
    expect(serviceDependencies('agent')).toEqual([]);
    key('SYSTEM\\CurrentControlSet\\Services\\agent').set('DependOnService', {
      type: 7,
      bytes: text('RpcSs\0+Network\0Log+\0\0'),
    });
    expect(serviceDependencies('agent')).toEqual(['RpcSs', 'Log+']);
  });

  describe('the agent', () => {
    const agent = { ...definition, name: 'nodekeeper-agent' };

    it('is absent, or has its time-out, its dependencies and the order of Windows', () => {
      expect(readPreshutdown()).toEqual({ kind: 'absent' });
      createService(agent);
      const reading = { kind: 'service', name: agent.name, timeoutMs: 50_000, dependencies: [] };
      expect(readPreshutdown()).toEqual({ ...reading, order: [] });
      const order = { type: 7, bytes: text('UsoSvc\0\0') };
      key('SYSTEM\\CurrentControlSet\\Control').set('PreshutdownOrder', order);
      expect(readPreshutdown()).toEqual({ ...reading, order: ['UsoSvc'] });
      windows.failures.set('OpenSCManagerW', 5);
      expect(readPreshutdown()).toEqual({ kind: 'unreadable', message: 'OpenSCManagerW: access is denied (5)' });
    });

    it('has the last shutdown that it recorded', async () => {
      const nowMs = Date.parse('2026-01-02T00:00:00Z');
      expect((await readShutdownHistory(program, nowMs)).last).toBeUndefined();
      const { bootedAtMs } = await readShutdownHistory(program, nowMs);
      expect(bootedAtMs).toBeLessThan(nowMs);
    });
  });
});

describe('a directory or file', () => {
  it('is made for administrators alone, once', () => {
    const path = join(program, 'data');
    makePrivateDirectory(path);
    expect(memory.processState.directories.get(path)).toBe('O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)');
    expect(() => makePrivateDirectory(path)).toThrow(new WindowsError(path, 183));
    nothingIsOpen();
    windows.failures.set('ConvertStringSecurityDescriptorToSecurityDescriptorW', 5);
    expect(() => makePrivateDirectory(join(program, 'other'))).toThrow('a security descriptor: access is denied (5)');
  });

  it('has an owner', () => {
    memory.processState.owners.set('C:\\x', 'S-1-5-21-1004');
    expect([ownerOf('C:\\x'), ownerOf(program)]).toEqual(['S-1-5-21-1004', ADMINISTRATORS_SID]);
    nothingIsOpen();
  });

  it.each(['GetFileSecurityW', 'GetSecurityDescriptorOwner', 'ConvertSidToStringSidW'])(
    'has an unknown owner when %s fails',
    (call) => {
      windows.failures.set(call, 5);
      expect(() => ownerOf(program)).toThrow(`owner of ${program}: access is denied (5)`);
      nothingIsOpen();
    },
  );
});

describe('a machine with Windows', () => {
  const machine = () => new WindowsMachine({ rootDirectory: program });
  const VERSION = 'SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion';
  const BOOT = 'SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters';

  it('has the facts of its registry', async () => {
    key(VERSION)
      .set('UBR', { type: 4, bytes: number(3_000) })
      .set('ProductName', { type: 1, bytes: text('Windows Server 2022\0') });
    key('SYSTEM\\HardwareConfig').set('LastConfig', { type: 1, bytes: text('{4c4c-b5}\0') });
    key(BOOT).set('BootId', { type: 4, bytes: number(12) });
    expect(await machine().facts()).toMatchObject({
      swapBytes: 0,
      memoryBytes: totalmem(),
      machineId: hostname(),
      systemUuid: '4c4c-b5',
      bootId: '12',
      kernelVersion: `${release()}.3000`,
      osImage: 'Windows Server 2022',
      operatingSystem: 'windows',
      architecture: 'amd64',
      osLabels: { 'node.kubernetes.io/windows-build': release() },
    });
    expect(machine().hostname()).toBe(hostname());
    expect(machine().addresses()).toEqual(addressesOf(networkInterfaces()));
  });

  it('has facts without any value', async () => {
    expect(await machine().facts()).toMatchObject({
      systemUuid: '',
      bootId: '',
      kernelVersion: release(),
      osImage: 'Windows',
    });
    expect(bootId()).toBe('');
  });

  it('counts processes and threads, and the bytes of its disk', async () => {
    Object.assign(windows, { processes: 100, threads: 1_000 });
    const use = await machine().use();
    expect([use.pidsUsed, use.pidsMax, use.nodeFs, use.imageFs]).toEqual([
      1_100,
      2 ** 24 - 2 ** 16,
      expect.objectContaining({ inodes: 0, inodesFree: 0 }),
      use.nodeFs,
    ]);
    expect(use.nodeFs?.capacityBytes).toBeGreaterThan(use.nodeFs?.availableBytes ?? 0);
    expect(use.nodeFs?.availableBytes).toBeGreaterThan(2 ** 20);
    expect(use.cpuBusySeconds).toBeGreaterThan(0);
    expect(use.memoryAvailableBytes / freemem()).toBeGreaterThan(0.5);
    windows.failures.set('K32GetPerformanceInfo', 5);
    await expect(machine().use()).rejects.toThrow('GetPerformanceInfo: access is denied (5)');
  });
});
