import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { networkInterfaces } from 'node:os';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openedBelow } from '../../../test/support/opened-below.ts';
import { LinuxMachine, MachineUnreadableError } from './linux-machine.ts';

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

const interfaces = (addresses: Record<string, readonly [string, 'IPv4' | 'IPv6'][]>) =>
  Object.fromEntries(
    Object.entries(addresses).map(([name, list]) => [name, list.map(([address, family]) => ({ address, family }))]),
  ) as unknown as ReturnType<typeof networkInterfaces>;

const HOST_ADDRESSES = interfaces({
  lo: [['127.0.0.1', 'IPv4']],
  eth0: [
    ['10.0.0.5', 'IPv4'],
    ['fe80::1', 'IPv6'],
    ['fd00::5', 'IPv6'],
  ],
  wlan0: [['192.168.1.5', 'IPv4']],
});

const MEMINFO = 'MemTotal: 1000 kB\nMemFree: 200 kB\nInactive(file): 50 kB\nSwapTotal: 300 kB\n';
const BARE = {
  'proc/meminfo': MEMINFO,
  'proc/cpuinfo': 'processor\t: 0\nmodel name: x\nprocessor\t: 1\n',
  'proc/sys/kernel/pid_max': '32768\n',
  'proc/sys/kernel/threads-max': '30000\n',
  'proc/stat': 'cpu  150 50 100 9999 77 40 60 8 0 0\ncpu0 1 2 3 4\n',
  'proc/loadavg': '0.12 0.10 0.05 3/115 31184\n',
};

function machineWith(files: Readonly<Record<string, string>>, architecture = 'x64', addresses = HOST_ADDRESSES) {
  const fileRoot = mkdtempSync(join(tmpdir(), 'linux-machine-'));
  roots.push(fileRoot);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(fileRoot, path)), { recursive: true });
    writeFileSync(join(fileRoot, path), text);
  }
  return new LinuxMachine({
    rootDirectory: '/data',
    imageDirectory: '/images',
    fileRoot,
    system: {
      hostname: () => 'n',
      networkInterfaces: () => addresses,
      lookup: async (name) => {
        if (name !== 'n') throw Object.assign(new Error('unknown'), { code: 'ENOTFOUND' });
        return [{ address: '10.0.0.5', family: 4 }];
      },
      statfs: async (path) => ({ bsize: 4_096, blocks: path === '/data' ? 100 : 10, bavail: 5, files: 50, ffree: 40 }),
      architecture,
    },
  });
}

describe('the machine under Linux', () => {
  it('reads its facts', async () => {
    const machine = machineWith({
      ...BARE,
      'sys/devices/system/cpu/online': '0-2,5\n',
      'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '3\n',
      'sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages': '0\n',
      'sys/class/dmi/id/product_uuid': 'UUID\n',
      'etc/machine-id': 'abc\n',
      'etc/os-release': 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
      'proc/sys/kernel/random/boot_id': 'boot-1\n',
      'proc/sys/kernel/osrelease': '6.1.0\n',
    });
    expect(await machine.facts()).toEqual({
      cpuCores: 4,
      memoryBytes: 1_024_000,
      swapBytes: 307_200,
      hugePages: { '2097152': 3, '1073741824': 0 },
      machineId: 'abc',
      systemUuid: 'UUID',
      bootId: 'boot-1',
      kernelVersion: '6.1.0',
      osImage: 'Debian GNU/Linux 12 (bookworm)',
      operatingSystem: 'linux',
      architecture: 'amd64',
    });
  });

  it('does with little: processors of cpuinfo, the machine id for the UUID', async () => {
    const facts = await machineWith({ ...BARE, 'etc/machine-id': 'abc\n' }).facts();
    expect(facts).toMatchObject({ cpuCores: 2, systemUuid: 'abc', osImage: 'Linux', hugePages: {}, bootId: '' });
  });

  it('has a name, and the architecture of Go or its own', async () => {
    expect(machineWith(BARE).hostname()).toBe('n');
    expect((await machineWith(BARE, 'arm64').facts()).architecture).toBe('arm64');
    expect((await machineWith(BARE, 'vax').facts()).architecture).toBe('vax');
  });

  it.each([
    ['its memory', { 'proc/meminfo': undefined }, '/proc/meminfo cannot be read'],
    ['the size of its memory', { 'proc/meminfo': 'x' }, '/proc/meminfo has no MemTotal'],
    ['its processors', { 'proc/cpuinfo': 'model name: x\n' }, '/proc/cpuinfo lists no processor'],
  ])('is unreadable without %s', async (_, change, message) => {
    const files = Object.entries({ ...BARE, ...change }).filter(
      (each): each is [string, string] => each[1] !== undefined,
    );
    const error = await machineWith(Object.fromEntries(files))
      .facts()
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(MachineUnreadableError);
    expect(error).toMatchObject({ message, code: 'machine-unreadable' });
  });

  it('counts the huge pages of each size, and nothing else in their directory', async () => {
    const folder = 'sys/kernel/mm/hugepages';
    const machine = machineWith({
      ...BARE,
      [`${folder}/hugepages-2048kB/nr_hugepages`]: '3\n',
      [`${folder}/hugepages-64kB/free_hugepages`]: '1\n',
      [`${folder}/xhugepages-4kB/nr_hugepages`]: '1\n',
      [`${folder}/hugepages-8kBx/nr_hugepages`]: '1\n',
    });
    expect((await machine.facts()).hugePages).toEqual({ '2097152': 3 });
  });

  it('reads files that are longer than its buffer, and keeps none open', async () => {
    const others = 'Other: 1 kB\n'.repeat(2_000);
    const machine = machineWith({ ...BARE, 'proc/meminfo': `${others}MemTotal: 1000 kB\n` });
    expect((await machine.facts()).memoryBytes).toBe(1_024_000);
    expect(openedBelow(roots[0] ?? '')).toEqual([]);
  });

  it('reads the UUID of a device tree', async () => {
    const files = { ...BARE, 'proc/device-tree/system-id': 'UUID\0' };
    expect((await machineWith(files).facts()).systemUuid).toBe('UUID');
  });

  it('reads its use', async () => {
    expect(await machineWith(BARE).use()).toEqual({
      // 1000 KiB less (1000 - 200 - 50) in the working set.
      memoryAvailableBytes: 250 * 1_024,
      nodeFs: { capacityBytes: 409_600, availableBytes: 20_480, inodes: 50, inodesFree: 40 },
      imageFs: { capacityBytes: 40_960, availableBytes: 20_480, inodes: 50, inodesFree: 40 },
      pidsMax: 30_000,
      pidsUsed: 115,
      // Without idle time, waits for disks and stolen time.
      cpuBusySeconds: 4,
    });
  });

  it('uses the inactive cache of the root of cgroup v2', async () => {
    const files = { ...BARE, 'sys/fs/cgroup/memory.stat': 'anon 1\ninactive_file 102400\n' };
    expect((await machineWith(files).use()).memoryAvailableBytes).toBe(300 * 1_024);
  });

  it('uses usage and inactive cache of the root of cgroup v1', async () => {
    const files = {
      ...BARE,
      'sys/fs/cgroup/memory/memory.stat': 'inactive_file 1\ntotal_inactive_file 102400\n',
      'sys/fs/cgroup/memory/memory.usage_in_bytes': '512000\n',
    };
    expect((await machineWith(files).use()).memoryAvailableBytes).toBe(600 * 1_024);
    const hybrid = { ...files, 'sys/fs/cgroup/memory.stat': 'inactive_file 102400\n' };
    expect((await machineWith(hybrid).use()).memoryAvailableBytes).toBe(300 * 1_024);
    const { 'sys/fs/cgroup/memory/memory.stat': _stat, ...withoutCache } = files;
    expect((await machineWith(withoutCache).use()).memoryAvailableBytes).toBe(250 * 1_024);
  });

  it('reads the address of the best default route that is up', async () => {
    const machine = machineWith({
      'proc/net/route': [
        'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
        'wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0',
        'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0',
        'eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      ].join('\n'),
      'proc/net/ipv6_route': [
        `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0`,
        `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 ${'0'.repeat(32)} ffffffff 00000001 00000000 00200200       lo`,
      ].join('\n'),
    });
    expect(await machine.defaultAddress(4)).toBe('10.0.0.5');
    expect(await machine.defaultAddress(6)).toBe('fd00::5');
    expect(await machineWith({}).defaultAddress(4)).toBeUndefined();
    // The interface of the best route has no address of this family.
    const tunnel = 'tun0\t00000000\t0100000A\t0003\t0\t0\t1\t00000000\t0\t0\t0';
    const wifi = tunnel.replace('tun0', 'wlan0').replace('\t1\t', '\t2\t');
    expect(await machineWith({ 'proc/net/route': `${tunnel}\n${wifi}\n` }).defaultAddress(4)).toBe('192.168.1.5');
    expect(await machineWith({ 'proc/net/route': `${tunnel}\n` }).defaultAddress(4)).toBeUndefined();
  });

  const DEFAULT_ROUTES = {
    'proc/net/route': 'eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n',
    'proc/net/ipv6_route': `${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00 ${'0'.repeat(32)} 00000400 2 0 00000003 eth0\n`,
  };
  it.each([
    ['127.0.0.2', false],
    ['10.127.0.1', true],
    ['169.254.1.1', false],
    ['10.169.254.1', true],
    ['::1', false],
    ['fd00::1', true],
    ['::1:0:1', true],
    ['fe80::1', false],
    ['FEBF::1', false],
    ['fec0::1', true],
    ['fd00:fe80::1', true],
  ])('has %s as its address for other hosts: %s', async (address, isFit) => {
    const family = address.includes(':') ? 6 : 4;
    const own = interfaces({ eth0: [[address, family === 6 ? 'IPv6' : 'IPv4']] });
    expect(await machineWith(DEFAULT_ROUTES, 'x64', own).defaultAddress(family)).toBe(isFit ? address : undefined);
  });

  it('reads addresses, names and swap devices', async () => {
    const machine = machineWith({ 'proc/swaps': 'Filename Type\n' });
    expect(machine.addresses()).toContainEqual({ interfaceName: 'eth0', address: 'fd00::5', family: 6 });
    expect(await machine.lookup('n')).toEqual([{ address: '10.0.0.5', family: 4 }]);
    expect(await machine.lookup('m')).toEqual([]);
    expect(await machine.swaps()).toBe('Filename Type\n');
    expect(await machineWith({}).swaps()).toBeUndefined();
  });
});

describe.runIf(process.platform === 'linux')('this machine', () => {
  it('can be read', async () => {
    const machine = new LinuxMachine({ rootDirectory: tmpdir() });
    const [facts, use] = await Promise.all([machine.facts(), machine.use()]);
    expect(facts.cpuCores).toBeGreaterThan(0);
    expect(use.memoryAvailableBytes).toBeGreaterThan(0);
    expect(use.memoryAvailableBytes).toBeLessThanOrEqual(facts.memoryBytes);
    expect(use.pidsUsed).toBeGreaterThan(0);
    expect(use.nodeFs.capacityBytes).toBeGreaterThan(0);
  });
});
