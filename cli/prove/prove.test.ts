/** Creation, interruption and removal, against stand-ins of CloudFormation and CloudWatch Logs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clusterPropsFromContext } from '../../cdk/lib/context.ts';
import { type StandInCloudFormation, startCloudFormation } from '../../test/support/cloudformation.ts';
import { until } from '../../test/support/until.ts';
import { CommandError } from '../command.ts';
import { awsStacks } from './aws-stacks.ts';
import type { Calls } from './calls.ts';
import { planOf } from './plan.ts';
import { type ProveParts, proveCommand } from './prove.ts';
import type { Stacks } from './stacks.ts';

const CLI = join(dirname(dirname(fileURLToPath(import.meta.url))), 'bin/nodekeeper.ts');
const REGION = 'eu-central-1';
const FACT = 'ec2-malformed-id';
/** As the CDK: creates the stack that the context names. With the name SLOW it then waits to be ended. */
const STAND_IN_CDK = `
const name = process.argv.find((text) => text.startsWith('stackName=')).slice('stackName='.length);
fetch(process.env.AWS_ENDPOINT_URL_CLOUDFORMATION + '/deploy?' + name).then(() => {
  if (process.env.SLOW_CDK) setTimeout(() => {}, 60000);
});
`;

let cloudFormation: StandInCloudFormation;
let directory: string;
let environment: Record<string, string>;
let lines: string[];
const children: ChildProcess[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nk-prove-'));
  mkdirSync(join(directory, 'node_modules/aws-cdk/bin'), { recursive: true });
  writeFileSync(join(directory, 'node_modules/aws-cdk/bin/cdk'), STAND_IN_CDK);
  writeFileSync(join(directory, 'cdk.json'), '{}');
  cloudFormation = await startCloudFormation('secret', REGION);
  cloudFormation.newStack = (name) => ({
    status: 'CREATE_COMPLETE',
    outputs: name.includes('Probe')
      ? { QueueUrl: 'https://queue', InfoFunction: 'i', WarnFunction: 'w', InfoLogs: 'il', WarnLogs: 'wl' }
      : { Endpoint: 'https://api.example', HealthTable: 'h', ObjectsTable: 'o', ControlTable: 'c' },
    resources: name.includes('Probe')
      ? { 'InfoLogs AWS::Logs::LogGroup': `${name}-InfoLogs`, 'WarnLogs AWS::Logs::LogGroup': `${name}-WarnLogs` }
      : {
          'ClusterApiFunction1 AWS::Lambda::Function': 'api',
          'ClusterWatchStreamWatchFunction1 AWS::Lambda::Function': 'watch',
          'ClusterAuditLogGroup1 AWS::Logs::LogGroup': `${name}-audit`,
        },
  });
  environment = {
    AWS_ACCESS_KEY_ID: 'AKID',
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url,
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: cloudFormation.url,
    AWS_ENDPOINT_URL_EC2: 'http://127.0.0.1:9',
  };
  lines = [];
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await cloudFormation.close();
  rmSync(directory, { recursive: true, force: true });
});

const answering: Calls['ec2'] = async () => ({
  status: 400,
  text: '<Response><Errors><Error><Code>InvalidInstanceID.Malformed</Code></Error></Errors></Response>',
});

interface Replaced {
  readonly stacks?: (real: Stacks) => Stacks;
  readonly ec2?: Calls['ec2'];
  readonly interrupted?: Promise<unknown>;
}

function partsOf({ stacks = (real) => real, ec2 = answering, interrupted }: Replaced = {}): ProveParts {
  return {
    find: async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret' }),
    stacksOf: (account, deployment) => stacks(awsStacks(account, deployment)),
    callsOf: (_account, { pause }) => ({ ec2, pause, nowMs: Date.now }) as unknown as Calls,
    directory,
    sleep: async () => {},
    interrupted: () => interrupted ?? new Promise(() => {}),
  };
}

async function prove(args: readonly string[], replaced?: Replaced): Promise<CommandError | undefined> {
  const io = { environment, nowMs: Date.now(), print: (line: string) => void lines.push(line) };
  try {
    await proveCommand(args, io, partsOf(replaced));
    return undefined;
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
}

const run = (replaced?: Replaced, ...more: readonly string[]): Promise<CommandError | undefined> =>
  prove(['--region', REGION, '--facts', FACT, '--yes', '--output', join(directory, 'report.json'), ...more], replaced);
const journals = (): string[] => globSync(join(directory, '*.journal'));
const existing = (): string[] => [...cloudFormation.stacks.keys(), ...cloudFormation.logGroups];
const report = () => JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'));

it('creates, measures, removes everything, and writes what it measured', async () => {
  expect(await run()).toBeUndefined();
  expect(report()).toMatchObject({
    report: { region: REGION, left: [], facts: [{ id: FACT, verdict: 'true', measured: { instances: 0 } }] },
  });
  expect(existing()).toEqual([]);
  expect(journals()).toEqual([]);
  const created = cloudFormation.asked.filter(({ action }) => action === 'CreateStack');
  expect(created).toEqual([
    { action: 'CreateStack', stackName: expect.stringMatching(/^NodekeeperProbe-[0-9a-f]{6}$/) },
  ]);
});

it('removes everything after a fact is false, and fails', async () => {
  const accepting: Calls['ec2'] = async () => ({ status: 200, text: '<reservationSet/>' });
  expect(await run({ ec2: accepting })).toMatchObject({ message: `not true, or unknown: ${FACT}` });
  expect(report().report.facts[0]).toMatchObject({ verdict: 'false', reason: '0 instances, no error' });
  expect(existing()).toEqual([]);
});

it('a fact that cannot be measured is unknown, with the reason', async () => {
  const failing: Calls['ec2'] = () => Promise.reject(new Error('ECONNRESET'));
  expect(await run({ ec2: failing })).toMatchObject({ message: expect.stringContaining(FACT) });
  expect(report().report.facts[0]).toMatchObject({ verdict: 'unknown', reason: 'ECONNRESET' });
});

describe('changes nothing', () => {
  it.each([
    [['--facts', 'none'], '--facts: there is no fact "none"'],
    [['--region', 'europe'], '"europe" is not an AWS region'],
    [['--minutes', '90'], '--minutes must be a whole number from 20 to 60, not 90'],
    [['--key', '/nowhere'], '/nowhere cannot be read: ENOENT'],
    [[], 'nothing was created'],
  ])('%j', async (args, message) => {
    expect(await prove(['--region', REGION, ...args])).toMatchObject({ message });
    expect([existing(), journals(), cloudFormation.asked]).toEqual([[], [], []]);
  });

  it('when the report cannot be written', async () => {
    const missing = join(directory, 'missing/report.json');
    expect(await run({}, '--output', missing)).toMatchObject({ message: `${missing} cannot be written: ENOENT` });
    writeFileSync(join(directory, 'report.json'), 'mine');
    expect(await run()).toMatchObject({ message: `${join(directory, 'report.json')} exists` });
    expect(readFileSync(join(directory, 'report.json'), 'utf8')).toBe('mine');
    expect([existing(), journals(), cloudFormation.asked]).toEqual([[], [], []]);
  });

  it('without credentials', async () => {
    const io = { environment, nowMs: 0, print: () => {} };
    const find = () => Promise.reject(new Error('no provider'));
    const failed = proveCommand(['--region', REGION, '--yes'], io, { ...partsOf(), find });
    await expect(failed).rejects.toMatchObject({ message: 'no AWS credentials were found: no provider' });
    expect(cloudFormation.asked).toEqual([]);
  });

  it('without a clone of the project', async () => {
    rmSync(join(directory, 'cdk.json'));
    expect(await run()).toMatchObject({ message: `${directory} has no cdk.json with the CDK` });
    expect(cloudFormation.asked).toEqual([]);
  });

  it('when a stack of that name exists', async () => {
    const named = { status: 'CREATE_COMPLETE', statusReason: undefined, outputs: new Map() };
    const failed = await run({ stacks: (real) => ({ ...real, describe: async () => named }) });
    expect(failed?.message).toMatch(/^the stack NodekeeperProve-[0-9a-f]{6} exists$/);
    expect([existing(), journals()]).toEqual([[], []]);
    expect(existsSync(join(directory, 'report.json'))).toBe(false);
  });
});

it('deploys with settings that the CDK app reads', () => {
  const { settings } = planOf('ab12cd');
  const read = new Set(['stackName', 'unrecordedSettings']);
  const props = clusterPropsFromContext((name) => {
    read.add(name);
    return settings[name];
  });
  expect(props).toMatchObject({ clusterId: 'prove-ab12cd', deletionProtection: false, accountConcurrency: 10 });
  expect(Object.keys(settings).filter((name) => !read.has(name))).toEqual([]);
});

class Killed extends Error {}

/** The process is killed at a call: before AWS has it, or after. Nothing of the process works from then on. */
function killAt(step: number, moment: 'before' | 'after'): { stacks: (real: Stacks) => Stacks; calls(): number } {
  let calls = 0;
  const killable = (real: Stacks): Stacks =>
    new Proxy(real, {
      get: (target, name: keyof Stacks) => {
        const method = target[name] as (...args: unknown[]) => unknown;
        if (name === 'isRunning') return method;
        return async (...args: unknown[]) => {
          calls += 1;
          if (calls > step || (calls === step && moment === 'before')) throw new Killed();
          const answer = await method(...args);
          if (calls === step) throw new Killed();
          return answer;
        };
      },
    });
  return { stacks: killable, calls: () => calls };
}

/** Creates the stack of the cluster without a process. */
const withoutCdk = (real: Stacks): Stacks => ({
  ...real,
  deployCluster: async ({ name }) => void (await fetch(`${cloudFormation.url}/deploy?${name}`)),
});

describe('killed at any step', () => {
  it('a second run with the journal removes everything', { timeout: 120_000 }, async () => {
    const whole = killAt(Number.POSITIVE_INFINITY, 'before');
    expect(await run({ stacks: (real) => whole.stacks(withoutCdk(real)) })).toBeUndefined();
    expect(whole.calls()).toBeGreaterThan(12);
    let left = 0;
    for (let step = 1; step <= whole.calls(); step += 1) {
      for (const moment of ['before', 'after'] as const) {
        const where = `killed ${moment} call ${step}`;
        rmSync(join(directory, 'report.json'), { force: true });
        const { stacks } = killAt(step, moment);
        await expect(run({ stacks: (real) => stacks(withoutCdk(real)) }), where).rejects.toThrow(Killed);
        left += existing().length;
        for (const journal of journals()) {
          // A line that was cut off.
          writeFileSync(journal, `${readFileSync(journal, 'utf8')}{"line":"cre`);
          expect(await prove(['--remove', journal]), where).toBeUndefined();
        }
        expect([existing(), journals()], where).toEqual([[], []]);
      }
    }
    expect(left).toBeGreaterThan(20);
  });

  it('a removal that is killed at any step is continued', { timeout: 60_000 }, async () => {
    for (let step = 1; ; step += 1) {
      // Ends after the stack of the cluster exists.
      const start = killAt(6, 'after');
      await expect(run({ stacks: (real) => start.stacks(withoutCdk(real)) })).rejects.toThrow(Killed);
      const [journal = ''] = journals();
      const { stacks } = killAt(step, 'after');
      const failed = await prove(['--remove', journal], { stacks }).catch((error: unknown) => error);
      if (failed === undefined) break;
      expect(failed).toBeInstanceOf(Killed);
      if (existsSync(journal)) expect(await prove(['--remove', journal])).toBeUndefined();
      expect([existing(), journals()], `step ${step}`).toEqual([[], []]);
      expect(step).toBeLessThan(40);
    }
  });
});

describe('interrupted at any step', () => {
  it('removes everything, and reports what it had measured', { timeout: 60_000 }, async () => {
    for (let step = 1; step <= 9; step += 1) {
      rmSync(join(directory, 'report.json'), { force: true });
      const interrupted = Promise.withResolvers<undefined>();
      let calls = 0;
      const stacks = (real: Stacks): Stacks =>
        new Proxy(withoutCdk(real), {
          get: (target, name: keyof Stacks) => {
            const method = target[name] as (...args: unknown[]) => unknown;
            return (...args: unknown[]) => {
              calls += 1;
              if (calls === step) interrupted.resolve(undefined);
              return method(...args);
            };
          },
        });
      const failed = await run({ stacks, interrupted: interrupted.promise });
      expect([existing(), journals()], `call ${step}`).toEqual([[], []]);
      if (failed !== undefined)
        expect(report().report.facts[0]).toMatchObject({ verdict: 'unknown', reason: 'interrupted' });
    }
  });
});

it('removes everything after a fault of its own, and reports the fault', async () => {
  const stacks = (real: Stacks): Stacks => ({
    ...withoutCdk(real),
    deployCluster: async (stack, ...rest) => {
      await withoutCdk(real).deployCluster(stack, ...rest);
      throw new TypeError('a fault');
    },
  });
  await expect(run({ stacks })).rejects.toThrow(new TypeError('a fault'));
  expect([existing(), journals()]).toEqual([[], []]);
});

it('lists what cannot be removed with the commands, and keeps the journal', async () => {
  const stacks = (real: Stacks): Stacks => ({
    ...withoutCdk(real),
    delete: () => Promise.reject(new CommandError('cloudformation:DeleteStack: AccessDenied', 'allow it')),
  });
  const failed = await run({ stacks });
  expect(failed?.message).toMatch(/^5 resources are left: NodekeeperProbe-\w+, NodekeeperProve-\w+, /);
  for (const group of ['Prove-\\w+-audit', 'Probe-\\w+-InfoLogs', 'Probe-\\w+-WarnLogs']) {
    expect(failed?.message).toMatch(new RegExp(`, Nodekeeper${group}(,|$)`));
  }
  expect(failed?.next).toContain(`aws cloudformation delete-stack --region ${REGION} --stack-name NodekeeperProve-`);
  expect(failed?.next).toContain('aws logs delete-log-group');
  const [journal = ''] = journals();
  expect(await prove(['--remove', journal])).toBeUndefined();
  expect(existing()).toEqual([]);
});

it('kill -9 leaves a CDK that deploys: the removal waits for its end', { timeout: 60_000 }, async () => {
  const env = { ...process.env, ...environment, SLOW_CDK: 'yes' };
  const child = spawn(process.execPath, [CLI, 'prove', '--region', REGION, '--facts', FACT, '--yes'], {
    cwd: directory,
    env,
  });
  children.push(child);
  const pid = await until(
    () =>
      /"pid":(\d+)/.exec(
        journals()
          .map((path) => readFileSync(path, 'utf8'))
          .join(),
      )?.[1],
    { withinMs: 40_000, what: 'a CDK that runs' },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
  const [journal = ''] = journals();
  expect(await prove(['--remove', journal])).toMatchObject({ next: expect.stringContaining(`kill ${pid}`) });
  await until(() => existing().length > 1, { withinMs: 20_000, what: 'its stack' });
  process.kill(Number(pid), 'SIGKILL');
  const removed = await until(async () => (await prove(['--remove', journal])) === undefined, { withinMs: 20_000 });
  expect([removed, existing(), journals()]).toEqual([true, [], []]);
});

describe('a signed report', () => {
  it('verifies with the public key, and not after a change or with another key', async () => {
    const keyOf = (name: string): string => {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519');
      writeFileSync(join(directory, name), privateKey.export({ type: 'pkcs8', format: 'pem' }));
      writeFileSync(join(directory, `${name}.pub`), publicKey.export({ type: 'spki', format: 'pem' }));
      return join(directory, name);
    };
    const [key, other] = [keyOf('key'), keyOf('other')];
    const path = join(directory, 'report.json');
    expect(await run({ stacks: withoutCdk }, '--key', key)).toBeUndefined();
    expect(await prove(['--verify', path, '--public-key', `${key}.pub`])).toBeUndefined();
    expect(await prove(['--verify', path])).toBeUndefined();
    expect(await prove(['--verify', path, '--public-key', `${other}.pub`])).toMatchObject({
      message: expect.stringContaining('does not match'),
    });
    writeFileSync(path, readFileSync(path, 'utf8').replace('InvalidInstanceID.Malformed', 'None'));
    expect(await prove(['--verify', path])).toMatchObject({ message: expect.stringContaining('does not match') });
  });
});
