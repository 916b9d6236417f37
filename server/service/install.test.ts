import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseServeOptions } from '../options.ts';
import { lockStore } from '../store/store-lock.ts';
import { installService, type ServiceMachine, uninstallService } from './install.ts';
import { serviceOf, unitMark } from './unit.ts';

const CLUSTER = serviceOf({ upstream: undefined });
const { name: SERVICE } = CLUSTER;
const PROGRAM = { node: '/bin/sh', main: '/bin/sh' };

let directory: string;
let unit: string;
let calls: string[];
let printed: string[];
/** What systemctl answers, by the beginning of its arguments. */
let answers: Record<string, { exitCode: number; output: string }>;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nk-install-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'units'));
  unit = join(directory, 'units', SERVICE);
  calls = [];
  printed = [];
  answers = {};
});

const machine = (changes: Partial<ServiceMachine> = {}): ServiceMachine => ({
  uid: 0,
  isBooted: true,
  unitDirectory: join(directory, 'units'),
  stateDirectory: join(directory, 'state'),
  async systemctl(...args) {
    const call = args.join(' ');
    if (args[0] !== 'show') calls.push(call);
    return answers[call] ?? { exitCode: 0, output: '' };
  },
  print: (line) => printed.push(line),
  ...changes,
});
const install = (args: readonly string[] = [], on = machine(), program = PROGRAM): Promise<void> =>
  installService(parseServeOptions(args), program, on);
const STARTED = ['daemon-reload', `enable ${SERVICE}`, `restart ${SERVICE}`];

describe('serve --install', () => {
  it('writes the unit, enables and starts it; a second time replaces it', async () => {
    await install();
    expect(calls).toEqual(STARTED);
    const first = readFileSync(unit, 'utf8');
    await install(['--port', '7000']);
    await install();
    expect(readFileSync(unit, 'utf8')).toBe(first);
    expect(readdirSync(join(directory, 'units'))).toEqual([SERVICE]);
    expect(printed.at(-1)).toContain('is installed and runs');
  });

  it('removes the unit again when it cannot be started, and says why', async () => {
    answers[`restart ${SERVICE}`] = { exitCode: 1, output: 'Job failed.\nMore' };
    await expect(install()).rejects.toThrow(`restart ${SERVICE} failed: Job failed. Nothing is installed`);
    expect(existsSync(unit)).toBe(false);
    expect(calls.slice(3)).toEqual([`disable --now ${SERVICE}`, 'daemon-reload', `reset-failed ${SERVICE}`]);
  });

  it('puts the unit of before back when the new one cannot be started', async () => {
    await install();
    const before = readFileSync(unit, 'utf8');
    answers[`restart ${SERVICE}`] = { exitCode: 1, output: 'Job failed.' };
    await expect(install(['--port', '7000'])).rejects.toThrow('The previous unit is restored');
    expect(readFileSync(unit, 'utf8')).toBe(before);
    expect(calls.slice(-2)).toEqual(['daemon-reload', `restart ${SERVICE}`]);
  });

  it.each([
    { what: 'without systemd', on: { isBooted: false }, args: [], expected: '--install needs systemd' },
    { what: 'without root', on: { uid: 1000 }, args: [], expected: '--install must be run by root' },
    { what: 'with --data', on: {}, args: ['--data', 'x'], expected: '--install excludes --data' },
    { what: 'with --demo', on: {}, args: ['--demo'], expected: '--install excludes --ephemeral and --demo' },
    { what: 'with a bad file', on: {}, args: ['--policy', '/none'], expected: '--policy: /none cannot be read' },
  ])('changes nothing $what', async ({ on, args, expected }) => {
    await expect(install(args, machine(on))).rejects.toThrow(expected);
    expect(calls).toEqual([]);
    expect(readdirSync(join(directory, 'units'))).toEqual([]);
  });

  it('refuses a program that the service could not read', async () => {
    const closed = join(directory, 'main');
    writeFileSync(closed, '');
    await expect(install([], machine(), { ...PROGRAM, main: closed })).rejects.toThrow('a service does not see');
  });

  it('leaves a unit of another program alone, here and in the directories of packages', async () => {
    writeFileSync(unit, '[Service]\n');
    for (const change of [() => install(), () => uninstallService(CLUSTER, machine())]) {
      await expect(change()).rejects.toThrow(`${unit} is a unit of another program`);
    }
    rmSync(unit);
    const packaged = join(directory, 'packaged');
    writeFileSync(packaged, '[Service]\n');
    answers[`show -P FragmentPath ${SERVICE}`] = { exitCode: 0, output: packaged };
    await expect(install()).rejects.toThrow(`${packaged} is a unit of another program`);
    expect(calls).toEqual([]);
  });

  it('refuses a data directory that another process uses, and not its own', async () => {
    mkdirSync(join(directory, 'state', 'nodekeeper-server', 'data'), { recursive: true });
    const lock = lockStore(join(directory, 'state', 'nodekeeper-server', 'data', 'nodekeeper.db'));
    try {
      await expect(install()).rejects.toThrow(`is in use by process ${process.pid}`);
      answers[`show -P MainPID ${SERVICE}`] = { exitCode: 0, output: String(process.pid) };
      await install();
    } finally {
      lock.release();
    }
    expect(calls).toEqual(STARTED);
  });
});

describe('serve --install of a hub', () => {
  const HUB = 'nodekeeper-hub.service';
  const upstream = (tokenFile: string) => ['--upstream', 'https://192.0.2.7:6443', '--upstream-token', tokenFile];
  const token = (): string => {
    const file = join(directory, 'hub-token');
    writeFileSync(file, 'a-token\n');
    return file;
  };

  it('is beside the cluster of the same machine, and is removed without it', async () => {
    await install();
    await install(upstream(token()));
    expect(readdirSync(join(directory, 'units')).sort()).toEqual([HUB, SERVICE].sort());
    expect(calls.slice(3)).toEqual(['daemon-reload', `enable ${HUB}`, `restart ${HUB}`]);
    expect(printed.at(-1)).toContain(join(directory, 'state', 'nodekeeper-hub'));
    const { service, ...options } = parseServeOptions(['--uninstall', '--upstream', 'https://192.0.2.7:6443']);
    expect(service).toBe('uninstall');
    await uninstallService(serviceOf(options), machine());
    expect(readdirSync(join(directory, 'units'))).toEqual([SERVICE]);
  });

  it('changes nothing when a file of its credentials cannot be used', async () => {
    await expect(install(upstream('/none'))).rejects.toThrow('--upstream-token: /none cannot be read');
    const ca = ['--upstream-ca', token()];
    await expect(install([...upstream(token()), ...ca])).rejects.toThrow('has no certificate in PEM');
    expect(calls).toEqual([]);
    expect(readdirSync(join(directory, 'units'))).toEqual([]);
  });

  it('refuses a copy that another process uses', async () => {
    mkdirSync(join(directory, 'state', 'nodekeeper-hub', 'data'), { recursive: true });
    const lock = lockStore(join(directory, 'state', 'nodekeeper-hub', 'data', 'replica.db'));
    try {
      await expect(install(upstream(token()))).rejects.toThrow(`is in use by process ${process.pid}`);
    } finally {
      lock.release();
    }
  });
});

describe('serve --uninstall', () => {
  it('stops and removes the unit, and can be repeated', async () => {
    writeFileSync(unit, `${unitMark(CLUSTER)}\n`);
    await uninstallService(CLUSTER, machine());
    expect(existsSync(unit)).toBe(false);
    expect(calls).toEqual([`disable --now ${SERVICE}`, 'daemon-reload', `reset-failed ${SERVICE}`]);
    await uninstallService(CLUSTER, machine());
    expect(printed).toEqual([expect.stringContaining('its data is kept'), `${SERVICE} is not installed`]);
  });

  it('keeps the unit when it cannot be stopped', async () => {
    writeFileSync(unit, `${unitMark(CLUSTER)}\n`);
    answers[`disable --now ${SERVICE}`] = { exitCode: 1, output: 'refused' };
    await expect(uninstallService(CLUSTER, machine())).rejects.toThrow('refused');
    expect(existsSync(unit)).toBe(true);
  });
});
