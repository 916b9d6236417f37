/**
 * A message bus of its own with a stand-in for logind and systemd on it (Debian: dbus, python3-dbusmock, systemd).
 * Nothing of this machine's own bus is touched.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import dbus from '@particle/dbus-next';
import { connectSystemBus, type SystemBus } from '../../agent/adapters/logind/system-bus.ts';
import { until } from './until.ts';

/** Debian's own, which has the modules of its packages. */
const PYTHON = '/usr/bin/python3';
const NEEDED: readonly (readonly [packageName: string, command: string, ...args: string[]])[] = [
  ['dbus', 'dbus-daemon', '--version'],
  ['systemd', 'systemd-inhibit', '--version'],
  ['python3-dbusmock', PYTHON, '-c', 'import dbusmock'],
];

/** Names of the Debian packages. */
export const NEEDED_PACKAGES: readonly string[] = NEEDED.map(([name]) => name);

/** Those of them that are not installed. */
export const missingPackages = (): string[] =>
  NEEDED.filter(([, command, ...args]) => spawnSync(command, args, { stdio: 'ignore' }).status !== 0).map(
    ([name]) => name,
  );

const LOGIN1 = 'org.freedesktop.login1';
const LOGIN1_PATH = '/org/freedesktop/login1';
const LOGIN1_MANAGER = 'org.freedesktop.login1.Manager';
const SYSTEMD1 = 'org.freedesktop.systemd1';
const SYSTEMD1_PATH = '/org/freedesktop/systemd1';
const MOCK = 'org.freedesktop.DBus.Mock';
const START_MAX_MS = 30_000;

/** A message bus with nothing on it. */
export function startBus() {
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-bus-'));
  const address = `unix:path=${join(folder, 'bus')}`;
  const config = join(folder, 'bus.conf');
  writeFileSync(
    config,
    `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>${address}</listen><auth>EXTERNAL</auth><policy context="default">
<allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow receive_sender="*"/></policy></busconfig>`,
  );
  const env = { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: address };
  const args = [`--config-file=${config}`, '--nofork', '--nopidfile'];
  const daemon = spawn('dbus-daemon', args, { stdio: 'ignore', env });
  return { folder, address, env, daemon };
}

export class MockSystemBus {
  readonly address: string;
  readonly folder: string;
  readonly client: SystemBus;
  readonly #daemon: ChildProcess;
  readonly #mocks: readonly ChildProcess[];

  private constructor(parts: {
    address: string;
    folder: string;
    client: SystemBus;
    daemon: ChildProcess;
    mocks: readonly ChildProcess[];
  }) {
    this.address = parts.address;
    this.folder = parts.folder;
    this.client = parts.client;
    this.#daemon = parts.daemon;
    this.#mocks = parts.mocks;
  }

  static async start(delayMaxMs: number): Promise<MockSystemBus> {
    const { folder, address, env, daemon } = startBus();
    const run = (command: string, ...args: string[]): ChildProcess => spawn(command, args, { stdio: 'ignore', env });
    const mocks: ChildProcess[] = [];
    try {
      const client = await until(() => connectSystemBus(address, { timeoutMs: 1_000 }), { withinMs: START_MAX_MS });
      mocks.push(run(PYTHON, '-m', 'dbusmock', '--template', 'logind'));
      mocks.push(run(PYTHON, '-m', 'dbusmock', '--system', SYSTEMD1, SYSTEMD1_PATH, `${SYSTEMD1}.Manager`));
      const bus = new MockSystemBus({ address, folder, client, daemon, mocks });
      await until(async () => (await bus.#isThere(LOGIN1)) && (await bus.#isThere(SYSTEMD1)), {
        withinMs: START_MAX_MS,
      });
      const delay = new dbus.Variant('t', BigInt(delayMaxMs * 1_000));
      await bus.#mock(LOGIN1, LOGIN1_PATH, 'AddProperty', 'ssv', [LOGIN1_MANAGER, 'InhibitDelayMaxUSec', delay]);
      await bus.#mock(SYSTEMD1, SYSTEMD1_PATH, 'AddMethod', 'sssss', [
        `${SYSTEMD1}.Manager`,
        'KillUnit',
        'ssi',
        '',
        '',
      ]);
      return bus;
    } catch (error) {
      for (const each of [...mocks, daemon]) each.kill('SIGKILL');
      rmSync(folder, { recursive: true });
      throw error;
    }
  }

  async #isThere(name: string): Promise<boolean> {
    const [owned] = await this.client.call({
      destination: 'org.freedesktop.DBus',
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      member: 'NameHasOwner',
      signature: 's',
      body: [name],
    });
    return owned === true;
  }

  #mock(destination: string, path: string, member: string, signature: string, body: unknown[]) {
    return this.client.call({ destination, path, interface: MOCK, member, signature, body });
  }

  async grantDelay(delayMaxMs: number): Promise<void> {
    const changed = { InhibitDelayMaxUSec: new dbus.Variant('t', BigInt(delayMaxMs * 1_000)) };
    await this.#mock(LOGIN1, LOGIN1_PATH, 'UpdateProperties', 'sa{sv}', [LOGIN1_MANAGER, changed]);
  }

  /** Sends a signal as logind itself would. */
  announce = (...body: readonly (readonly [type: string, value: unknown])[]): Promise<void> =>
    this.#emit('PrepareForShutdown', body);

  /** Before a suspend, or after the resume. */
  announceSleep = (isSuspending: boolean): Promise<void> => this.#emit('PrepareForSleep', [['b', isSuspending]]);

  async #emit(member: string, body: readonly (readonly [type: string, value: unknown])[]): Promise<void> {
    const values = body.map(([type, value]) => new dbus.Variant(type, value));
    const signature = body.map(([type]) => type).join('');
    const signal = [LOGIN1_MANAGER, member, signature, values];
    await this.#mock(LOGIN1, LOGIN1_PATH, 'EmitSignal', 'sssav', signal);
  }

  /** who and why of every lock. */
  async locks(): Promise<string[]> {
    const [list] = await this.client.call({
      destination: LOGIN1,
      path: LOGIN1_PATH,
      interface: LOGIN1_MANAGER,
      member: 'ListInhibitors',
    });
    return (list as string[][]).map(([what, who, why, mode]) => [what, who, why, mode].join('|'));
  }

  /** Arguments of every KillUnit so far. */
  async killedUnits(): Promise<unknown[][]> {
    const [calls] = await this.#mock(SYSTEMD1, SYSTEMD1_PATH, 'GetMethodCalls', 's', ['KillUnit']);
    return (calls as [bigint, { value: unknown }[]][]).map(([, args]) => args.map(({ value }) => value));
  }

  /** Stops the bus at once, with all connections. */
  breakDown(): void {
    this.#daemon.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    this.client.close();
    const processes = [...this.#mocks, this.#daemon];
    const ended = processes.map(
      (each) =>
        new Promise<void>((resolve) => {
          if (each.exitCode !== null || each.signalCode !== null) resolve();
          else each.once('exit', () => resolve());
        }),
    );
    for (const each of processes) each.kill('SIGKILL');
    await Promise.all(ended);
    rmSync(this.folder, { recursive: true });
  }
}
