import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FunctionPlan } from '../assembly/plan.ts';
import { accountConcurrency } from './account-concurrency.ts';
import { functionVariables, LocalFunction, type LocalFunctionOptions } from './local-function.ts';
import type { FunctionError } from './protocol.ts';

const SOURCE = `
let invocations = 0;
let laterAtMs;
const verbs = {
  echo: (event, context) => ({ event, invocations, name: context.functionName, left: context.getRemainingTimeInMillis(), id: context.awsRequestId }),
  environment: () => ({ region: process.env.AWS_REGION, own: process.env.OWN, home: process.env.HOME, cache: process.env.NODE_COMPILE_CACHE, table: process.env.AWS_ENDPOINT_URL_DYNAMODB, handler: process.env._HANDLER }),
  say: () => { console.log('one\\ntwo'); console.error('{"_aws":{}}'); },
  fail: () => { throw new TypeError('no such thing', { cause: new Error('deeper') }); },
  exit: () => process.exit(7),
  crash: () => { setImmediate(() => { throw new Error('later'); }); return new Promise(() => {}); },
  hang: () => new Promise(() => {}),
  spin: () => { for (;;); },
  later: () => { setTimeout(() => { laterAtMs = performance.timeOrigin + performance.now(); }, 1); },
  laterAt: async () => { while (laterAtMs === undefined) await new Promise(setImmediate); return laterAtMs; },
  wait: (event) => new Promise((resolve) => setTimeout(() => resolve(invocations), event.ms)),
};
export const handler = async (event, context) => { invocations += 1; return verbs[event.verb](event, context); };
export const streamed = awslambda.streamifyResponse(async (event, stream) => {
  for (let line = 0; line < event.lines; line += 1) {
    if (!stream.write(line + '\\n')) await new Promise((resolve) => stream.once('drain', resolve));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  console.log('ended after ' + event.lines + ' lines');
  stream.end();
});
`;

let folder: string;
const running: LocalFunction[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-function-'));
  writeFileSync(join(folder, 'index.mjs'), SOURCE);
  writeFileSync(join(folder, 'broken.mjs'), 'throw new Error("cannot load");');
  return () => rmSync(folder, { recursive: true });
});

function aFunction(plan: Partial<FunctionPlan> = {}, options: Partial<LocalFunctionOptions> = {}) {
  const lines: string[] = [];
  const errors: FunctionError[] = [];
  const full: FunctionPlan = {
    logicalId: 'F',
    name: 'f',
    functionName: 'Test-F',
    arn: 'arn:aws:lambda:us-east-1:000000000000:function:Test-F',
    codePath: folder,
    handler: 'index.handler',
    timeoutSeconds: 5,
    memoryMegabytes: 128,
    environment: { OWN: 'yes' },
    runtime: 'nodejs24.x',
    logGroupName: '/aws/lambda/Test-F',
    logFormat: 'JSON',
    mayRecur: false,
    async: { maximumRetryAttempts: 0, maximumEventAgeSeconds: 60 },
    logLevel: 'INFO',
    systemLogLevel: 'WARN',
    reservedConcurrency: undefined,
    ...plan,
  };
  const variables = functionVariables(full, {
    region: 'us-east-1',
    dynamodbEndpoint: 'http://d',
    ec2Endpoint: 'http://e',
    logsEndpoint: 'http://l',
    sqsEndpoint: 'http://q',
    lambdaEndpoint: 'http://f',
    eventsEndpoint: 'http://v',
    noServiceEndpoint: 'http://n',
  });
  const fn = new LocalFunction({
    plan: full,
    environmentsMax: 1,
    awsLimits: true,
    variables,
    caPem: undefined,
    onLine: (line) => lines.push(line),
    onError: (error) => errors.push(error),
    ...options,
  });
  running.push(fn);
  return { fn, lines, errors };
}

afterEach(async () => {
  for (const fn of running.splice(0)) await fn.stop();
});

const payload = async (outcome: Promise<{ kind: string; payload?: string }>) =>
  JSON.parse((await outcome).payload ?? 'null');

describe('a function on this machine', () => {
  it('passes the event and a context to the handler and keeps its environment warm', async () => {
    const { fn } = aFunction();
    expect(await payload(fn.invoke({ verb: 'echo', a: undefined }))).toMatchObject({
      event: { verb: 'echo' },
      invocations: 1,
      name: 'Test-F',
    });
    const second = await payload(fn.invoke({ verb: 'echo' }));
    expect(second.invocations).toBe(2);
    expect(second.left).toBeGreaterThan(4_000);
    expect(fn.counters).toMatchObject({ invocations: 2, environmentsStarted: 1, errors: 0 });
    expect(await fn.cpuMs()).toBeGreaterThan(0);
    expect(await fn.heapBytes()).toBeGreaterThan(0);
  });

  it('reports no CPU time and no heap of an environment that has ended but not reported its exit', async () => {
    const { fn } = aFunction();
    await fn.invoke({ verb: 'echo' });
    const ended = fn.endEnvironments();
    // Blocks this thread until the worker has ended: its exit event is processed only after the two questions.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    expect(await Promise.all([fn.cpuMs(), fn.heapBytes()])).toEqual([0, 0]);
    await ended;
  });

  it('keeps compiled code for the next environment before it accepts an event', async () => {
    const compileCache = join(folder, 'compile-cache');
    const { fn } = aFunction({}, { compileCache });
    await fn.warm();
    const files = readdirSync(compileCache, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    // The worker, the protocol and the bundle of the function.
    expect(files.length).toBeGreaterThanOrEqual(3);
    expect((await payload(fn.invoke({ verb: 'environment' }))).cache).toBeUndefined();
  });

  it('continues with a new environment when all of them were ended', async () => {
    const { fn } = aFunction();
    await fn.invoke({ verb: 'echo' });
    await fn.endEnvironments();
    expect(await payload(fn.invoke({ verb: 'echo' }))).toMatchObject({ invocations: 1 });
    expect(fn.counters).toMatchObject({ environmentsStarted: 2, errors: 0 });
  });

  it('ends a running event with the earlier code when it is updated, and runs the next one with the new code', async () => {
    const { fn } = aFunction({}, { environmentsMax: 2 });
    // One environment is idle during the update, the other one is busy.
    await Promise.all([fn.invoke({ verb: 'wait', ms: 50 }), fn.invoke({ verb: 'wait', ms: 50 })]);
    const running = payload(fn.invoke({ verb: 'wait', ms: 200 }));
    await fn.update({ plan: { ...fn.plan, timeoutSeconds: 9 }, variables: { ...fn.variables, OWN: 'new' } });
    expect(await payload(fn.invoke({ verb: 'environment' }))).toMatchObject({ own: 'new' });
    expect(await running).toBe(2);
    // The environment of the earlier code is not used again, although it was idle last.
    expect(await payload(fn.invoke({ verb: 'environment' }))).toMatchObject({ own: 'new' });
    expect(await payload(fn.invoke({ verb: 'echo' }))).toMatchObject({ invocations: 3 });
    expect(fn.environments).toBe(1);
    expect(fn.counters).toMatchObject({ environmentsStarted: 3, errors: 0 });
  });

  it('passes an event that waited for an environment of the earlier code to the new one', async () => {
    const { fn } = aFunction();
    const running = payload(fn.invoke({ verb: 'wait', ms: 200 }));
    const waiting = payload(fn.invoke({ verb: 'environment' }));
    await fn.update({ plan: fn.plan, variables: { ...fn.variables, OWN: 'new' } });
    expect(await running).toBe(1);
    expect(await waiting).toMatchObject({ own: 'new' });
  });

  it('shows the handler the variables of the template and of Lambda, and none of ours', async () => {
    const { fn } = aFunction();
    expect(await payload(fn.invoke({ verb: 'environment' }))).toEqual({
      region: 'us-east-1',
      own: 'yes',
      table: 'http://d',
      handler: 'index.handler',
    });
  });

  it('passes on what the handler prints, line by line', async () => {
    const { fn, lines } = aFunction();
    await fn.invoke({ verb: 'say' });
    await expect.poll(() => lines.toSorted()).toEqual(['one', 'two', '{"_aws":{}}']);
  });

  it('writes start and report of each invocation as its level allows, billed with the loading of the environment once', async () => {
    const written: string[] = [];
    const { fn, lines } = aFunction({ systemLogLevel: 'INFO' }, { onSystemLine: (line) => written.push(line) });
    await fn.invoke({ verb: 'wait', ms: 30 });
    await fn.invoke({ verb: 'fail' });
    const events = written.map((line) => JSON.parse(line));
    expect(events.map(({ type, record }) => [type, record.status])).toEqual([
      ['platform.start', undefined],
      ['platform.report', 'success'],
      ['platform.start', undefined],
      ['platform.report', 'error'],
    ]);
    const [first, second] = [events[1].record.metrics, events[3].record.metrics];
    expect(first.initDurationMs).toBeGreaterThan(1);
    expect(Math.abs(first.billedDurationMs - Math.ceil(first.durationMs + first.initDurationMs))).toBeLessThanOrEqual(
      1,
    );
    expect(second).not.toHaveProperty('initDurationMs');
    expect(Math.abs(second.billedDurationMs - Math.ceil(second.durationMs))).toBeLessThanOrEqual(1);
    expect(fn.counters.billedMs).toBeLessThan(first.billedDurationMs + second.billedDurationMs);
    expect(lines).toEqual([]);
  });

  it.each([
    [{ systemLogLevel: 'WARN' }, ['platform.report']],
    [{ systemLogLevel: undefined }, ['platform.start', 'platform.report', 'platform.start', 'platform.report']],
    [{ systemLogLevel: undefined, logFormat: 'Text' }, []],
  ])('writes of %o what went wrong, or all', async (plan, types) => {
    const written: string[] = [];
    const { fn } = aFunction(plan, { onSystemLine: (line) => written.push(line) });
    await fn.invoke({ verb: 'echo' });
    await fn.invoke({ verb: 'fail' });
    expect(written.map((line) => JSON.parse(line).type)).toEqual(types);
  });

  it('reports a handler that throws, with its causes, and continues with the same environment', async () => {
    const { fn, errors } = aFunction();
    expect(await fn.invoke({ verb: 'fail' })).toMatchObject({
      kind: 'failed',
      error: { errorType: 'TypeError', errorMessage: 'no such thing' },
    });
    expect(errors[0]?.stack).toMatch(/caused by Error: deeper/);
    expect((await payload(fn.invoke({ verb: 'echo' }))).invocations).toBe(2);
  });

  it.each(['exit', 'crash'])('replaces an environment that ends itself: %s', async (verb) => {
    const { fn } = aFunction();
    expect(await fn.invoke({ verb })).toMatchObject({ kind: 'failed' });
    expect((await payload(fn.invoke({ verb: 'echo' }))).invocations).toBe(1);
    expect(fn.counters.environmentsStarted).toBe(2);
  });

  it.each(['hang', 'spin'])('stops a handler at its timeout and replaces the environment: %s', async (verb) => {
    const { fn, errors } = aFunction({ timeoutSeconds: 0.2 });
    await fn.warm();
    expect(await fn.invoke({ verb })).toEqual({ kind: 'timedOut' });
    expect(errors).toMatchObject([{ errorMessage: 'timed out after 0.2 s' }]);
    expect((await payload(fn.invoke({ verb: 'echo' }))).invocations).toBe(1);
  });

  it('lets an event wait while the only environment is busy', async () => {
    const { fn } = aFunction();
    const both = await Promise.all([
      payload(fn.invoke({ verb: 'wait', ms: 50 })),
      payload(fn.invoke({ verb: 'wait', ms: 0 })),
    ]);
    expect(both).toEqual([1, 2]);
  });

  it('grows to its bound when events come together', async () => {
    const { fn } = aFunction({}, { environmentsMax: 2 });
    await Promise.all([1, 2, 3].map(() => fn.invoke({ verb: 'wait', ms: 30 })));
    expect(fn.environments).toBe(2);
    expect(fn.counters.environmentsStarted).toBe(2);
  });

  it('runs nothing between two events: a timer waits for the next one', async () => {
    const { fn } = aFunction();
    const { fn: other } = aFunction();
    await fn.invoke({ verb: 'later' });
    await other.invoke({ verb: 'wait', ms: 50 });
    const thawedAtMs = performance.timeOrigin + performance.now();
    expect(await payload(fn.invoke({ verb: 'laterAt' }))).toBeGreaterThanOrEqual(thawedAtMs);
  });

  it('lets timers run between two events without the limits of AWS', async () => {
    const { fn } = aFunction({}, { awsLimits: false });
    const { fn: other } = aFunction();
    await fn.invoke({ verb: 'later' });
    await other.invoke({ verb: 'wait', ms: 50 });
    const nextAtMs = performance.timeOrigin + performance.now();
    expect(await payload(fn.invoke({ verb: 'laterAt' }))).toBeLessThan(nextAtMs);
  });

  it.each([
    [true, 'returned', 1],
    [false, 'abandoned', 0],
  ])('with the limits of AWS %s, a handler is %s after its receiver disconnected', async (awsLimits, kind, kept) => {
    const { fn, lines } = aFunction({ handler: 'index.streamed' }, { awsLimits });
    const receiver = new AbortController();
    const received: string[] = [];
    const outcome = await fn.invoke(
      { lines: 5 },
      {
        gone: receiver.signal,
        head: () => {},
        chunk: async (chunk) => {
          received.push(Buffer.from(chunk).toString());
          receiver.abort();
        },
      },
    );
    expect(outcome.kind).toBe(kind);
    expect(received[0]).toBe('0\n');
    await expect.poll(() => lines).toEqual(Array(kept).fill('ended after 5 lines'));
  });

  it('runs nothing for a receiver that disconnected while the function was loaded, and processes the next event', async () => {
    const { fn, lines } = aFunction({ handler: 'index.streamed' }, { awsLimits: false });
    const gone = new AbortController();
    const loading = fn.invoke({ lines: 5 }, { gone: gone.signal, head: () => {}, chunk: async () => {} });
    gone.abort();
    expect((await loading).kind).toBe('abandoned');
    expect(lines).toEqual([]);
    expect((await fn.invoke({ lines: 1 })).kind).toBe('returned');
    expect(fn.counters.environmentsStarted).toBe(1);
  });

  it('is throttled at the concurrency limit of the account, also while an event waits for an environment', async () => {
    const { fn } = aFunction({}, { concurrency: accountConcurrency(2, new Map()) });
    const running = [fn.invoke({ verb: 'wait', ms: 30 }), fn.invoke({ verb: 'wait', ms: 0 })];
    expect(await fn.invoke({ verb: 'echo' })).toEqual({ kind: 'throttled' });
    expect((await Promise.all(running)).map(({ kind }) => kind)).toEqual(['returned', 'returned']);
    expect((await fn.invoke({ verb: 'echo' })).kind).toBe('returned');
    expect(fn.counters).toMatchObject({ invocations: 3, throttles: 1 });
  });

  it('throttles instead of waiting, where an event holds its environment for long', async () => {
    const { fn } = aFunction({}, { waits: false });
    const held = fn.invoke({ verb: 'wait', ms: 30 });
    expect(await fn.invoke({ verb: 'echo' })).toEqual({ kind: 'throttled' });
    expect((await held).kind).toBe('returned');
  });

  it.each([
    ['broken.handler', /cannot load/],
    ['index.missing', /index\.missing is undefined or not exported/],
    ['absent.handler', /Cannot find module 'absent'/],
  ])('says why %s cannot be loaded', async (handler, message) => {
    const { fn } = aFunction({ handler });
    const outcome = await fn.invoke({});
    expect(outcome).toMatchObject({ kind: 'failed', error: { errorType: 'Runtime.InitError' } });
    expect(outcome.kind === 'failed' && outcome.error.errorMessage).toMatch(message);
  });

  it('refuses events once stopped', async () => {
    const { fn } = aFunction();
    await fn.stop();
    expect(await fn.invoke({ verb: 'echo' })).toEqual({ kind: 'throttled' });
  });

  it('reports no error of an event that its stop cuts off, such as an open watch', async () => {
    const { fn, lines, errors } = aFunction();
    await fn.invoke({ verb: 'say' });
    const cutOff = fn.invoke({ verb: 'hang' });
    await fn.stop();
    expect((await cutOff).kind).toBe('failed');
    expect(lines).toContain('one');
    expect(errors).toEqual([]);
    expect(fn.counters.errors).toBe(0);
  });
});
