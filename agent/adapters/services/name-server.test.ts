import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { decode, encode, RECURSION_DESIRED } from 'dns-packet';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { until } from '../../../test/support/until.ts';
import type { NameAnswer } from '../../rules/services/names.ts';
import {
  firstMessage,
  type NameServer,
  type NameServerOptions,
  QuestionRate,
  resolversToAsk,
  serveNames,
} from './name-server.ts';

const HOST = '127.0.0.1';
const address = (name: string, data: string): NameAnswer => ({
  kind: 'records',
  answers: [{ name, type: 'A', data }],
  additionals: [],
});
/** So many addresses need TCP. */
const many = (name: string): NameAnswer => ({
  kind: 'records',
  answers: Array.from({ length: 200 }, (_, index) => ({ name, type: 'A' as const, data: `10.1.0.${index}` })),
  additionals: [],
});

function clusterAnswer(name: string, type: string): NameAnswer {
  if (!name.endsWith('cluster.local')) return { kind: 'elsewhere' };
  if (name === 'web.cluster.local')
    return type === 'A' ? address(name, '10.96.0.10') : { kind: 'records', answers: [], additionals: [] };
  if (name === 'many.cluster.local') return many(name);
  if (name === 'alias.cluster.local') {
    return { kind: 'alias', target: 'mail.example', record: { name, type: 'CNAME', data: 'mail.example' } };
  }
  if (name === 'dot.cluster.local') {
    return { kind: 'alias', target: 'mail.example.', record: { name, type: 'CNAME', data: 'mail.example' } };
  }
  if (name === 'loop.cluster.local')
    return { kind: 'alias', target: name, record: { name, type: 'CNAME', data: name } };
  return { kind: 'unknown' };
}

const EDNS = {
  type: 'OPT' as const,
  name: '.',
  udpPayloadSize: 1_232,
  flags: 0,
  options: [],
  extendedRcode: 0,
  ednsVersion: 0,
  flag_do: false,
};

let upstream: NameServer;
let server: NameServer;
let outcomes: string[];
let asked: string[];

function serve(options: Partial<NameServerOptions>): Promise<NameServer> {
  const open = () =>
    serveNames({
      address: HOST,
      port: 0,
      domain: 'cluster.local',
      answer: clusterAnswer,
      resolvers: async () => [],
      ...options,
    });
  // A port that is free over TCP may be in use over UDP.
  return options.port === undefined ? open().catch(open) : open();
}

beforeEach(async () => {
  outcomes = [];
  asked = [];
  upstream = await serve({
    domain: 'example',
    answer(name) {
      asked.push(name);
      return name === 'mail.example'
        ? address(name, '192.0.2.25')
        : name === 'big.example'
          ? many(name)
          : { kind: 'unknown' };
    },
  });
  server = await serve({
    resolvers: async () => [HOST],
    resolverPort: upstream.port,
    onQuestion: (outcome) => outcomes.push(outcome),
  });
});
afterEach(async () => {
  await server.close();
  await upstream.close();
});

const resolver = (port = server.port): Resolver => {
  const client = new Resolver({ timeout: 2_000, tries: 1 });
  client.setServers([`${HOST}:${port}`]);
  return client;
};
const codeOf = (lookup: Promise<unknown>): Promise<unknown> =>
  lookup.then(
    () => 'found',
    ({ code }) => code,
  );

/** As many addresses as the name says. */
const addressesByName = (name: string): NameAnswer => ({
  kind: 'records',
  answers: Array.from({ length: Number(name) }, () => ({ name: 'x', type: 'A' as const, data: '10.0.0.1' })),
  additionals: [],
});

describe('the server of names', () => {
  it('answers names of the cluster, and says which do not exist', async () => {
    expect(await resolver().resolve4('web.cluster.local', { ttl: true })).toEqual([{ address: '10.96.0.10', ttl: 5 }]);
    expect(await codeOf(resolver().resolve6('web.cluster.local'))).toBe('ENODATA');
    expect(await codeOf(resolver().resolve4('absent.cluster.local'))).toBe('ENOTFOUND');
    expect(asked).toEqual([]);
    expect(outcomes).toEqual(['cluster', 'cluster', 'cluster']);
  });

  it('asks the resolvers of the machine about other names', async () => {
    expect(await resolver().resolve4('mail.example')).toEqual(['192.0.2.25']);
    expect(await codeOf(resolver().resolve4('absent.example'))).toBe('ENOTFOUND');
    expect(outcomes).toEqual(['forwarded', 'forwarded']);
  });

  it('answers over TCP what does not fit UDP, also what others answer', async () => {
    expect(await resolver().resolve4('many.cluster.local')).toHaveLength(200);
    expect(await resolver().resolve4('big.example')).toHaveLength(200);
  });

  it('follows an alias to a name elsewhere, and one to itself not for ever', async () => {
    expect(await resolver().resolve4('alias.cluster.local')).toEqual(['192.0.2.25']);
    expect(await resolver().resolve4('dot.cluster.local')).toEqual(['192.0.2.25']);
    expect(await resolver().resolveCname('alias.cluster.local')).toEqual(['mail.example']);
    await codeOf(resolver().resolve4('loop.cluster.local'));
    expect(await resolver().resolve4('web.cluster.local')).toEqual(['10.96.0.10']);
  });

  it('asks the next resolver when one does not answer, and says when none does', async () => {
    const one = await serve({ resolvers: async () => ['127.0.0.2', HOST], resolverPort: upstream.port });
    expect(await resolver(one.port).resolve4('mail.example')).toEqual(['192.0.2.25']);
    await one.close();
    const none = await serve({ onQuestion: (outcome) => outcomes.push(outcome) });
    expect(await codeOf(resolver(none.port).resolve4('mail.example'))).toBe('ESERVFAIL');
    expect(outcomes).toEqual(['failed']);
    await none.close();
  });

  it('says for how long a name or a kind of record does not exist', async () => {
    const socket = createSocket('udp4');
    onTestFinished(() => void socket.close());
    const ask = async (name: string, type: 'A' | 'AAAA' | 'CNAME') => {
      const flags = RECURSION_DESIRED;
      socket.send(encode({ type: 'query', id: 5, flags, questions: [{ name, type }] }), server.port, HOST);
      return decode((await once(socket, 'message'))[0]);
    };
    const authority = {
      ...{ name: 'cluster.local', type: 'SOA', ttl: 5 },
      data: {
        ...{ mname: 'ns.dns.cluster.local', rname: 'hostmaster.cluster.local', serial: 1 },
        ...{ refresh: 7_200, retry: 1_800, expire: 86_400, minimum: 5 },
      },
    };
    for (const [name, type, rcode, isHere] of [
      ['absent.cluster.local', 'A', 'NXDOMAIN', false],
      ['web.cluster.local', 'AAAA', 'NOERROR', false],
      ['web.cluster.local', 'A', 'NOERROR', true],
    ] as const) {
      const answer = await ask(name, type);
      expect(answer).toMatchObject({ id: 5, rcode, flag_rd: true, questions: [{ name, type }] });
      expect(answer.authorities).toHaveLength(isHere ? 0 : 1);
      if (!isHere) expect(answer.authorities).toMatchObject([authority]);
      expect(answer.answers).toHaveLength(isHere ? 1 : 0);
    }
    expect((await ask('loop.cluster.local', 'A')).answers).toHaveLength(8);
    // The alias itself, and not what is behind it.
    expect((await ask('alias.cluster.local', 'CNAME')).answers).toMatchObject([
      { type: 'CNAME', data: 'mail.example' },
    ]);
    expect(asked).toEqual([]);
  });

  it.each([
    ['the answer', 0, 0, 'NOERROR'],
    ['an answer to another question', 1, 0, 'SERVFAIL'],
    ['less than a header', 0, -8, 'SERVFAIL'],
  ])('takes over TCP from a resolver %s', async (_what, numberAhead, bytesMore, outcome) => {
    const other = createServer((socket) => {
      socket.once('data', (bytes: Buffer) => {
        const query = decode(bytes.subarray(2));
        const answers = [{ name: 'tcp.example', type: 'A' as const, data: '192.0.2.7' }];
        const whole = encode({ type: 'response', ...query, answers, id: (query.id ?? 0) + numberAhead });
        const answer = bytesMore < 0 ? whole.subarray(0, 12 + bytesMore) : whole;
        socket.end(Buffer.concat([Buffer.from([0, answer.length]), answer]));
      });
    });
    onTestFinished(() => void other.close());
    const one = await serve({ resolvers: async () => [HOST], resolverPort: await listenOnLoopback(other) });
    onTestFinished(() => one.close());
    const socket = connect(one.port, HOST);
    onTestFinished(() => void socket.destroy());
    const question = encode({ type: 'query', id: 6, questions: [{ name: 'tcp.example', type: 'A' }] });
    socket.write(Buffer.concat([Buffer.from([0, question.length]), question]));
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    const answer = decode(bytes.subarray(2));
    const addresses = answer.answers?.map((each) => (each.type === 'A' ? each.data : each.type));
    expect(answer).toMatchObject({ id: 6, rcode: outcome });
    expect(addresses).toEqual(outcome === 'NOERROR' ? ['192.0.2.7'] : []);
  });

  it('asks a resolver over UDP that does not answer over TCP, for what is behind an alias', async () => {
    const other = createSocket('udp4');
    onTestFinished(() => void other.close());
    other.on('message', (bytes, { port }) => {
      // Neither is an answer to the question.
      other.send(bytes.subarray(0, 4), port, HOST);
      other.send(encode({ type: 'response', id: ((decode(bytes).id ?? 0) + 1) % 0x1_0000 }), port, HOST);
      const answers = [{ name: 'mail.example', type: 'A' as const, data: '192.0.2.8' }];
      other.send(encode({ ...decode(bytes), type: 'response', answers }), port, HOST);
    });
    await new Promise<void>((resolve) => other.bind(0, HOST, resolve));
    const one = await serve({ resolvers: async () => [HOST], resolverPort: other.address().port });
    onTestFinished(() => one.close());
    expect(await resolver(one.port).resolve4('alias.cluster.local')).toEqual(['192.0.2.8']);
  });

  it('asks three resolvers, and never itself', () => {
    expect(resolversToAsk(['a', 'b', 'c', 'd', 'e'], 'b')).toEqual(['a', 'c', 'd']);
    expect(resolversToAsk(['a', 'b'], undefined)).toEqual(['a', 'b']);
  });

  it('survives what is no question, and refuses what is malformed', async () => {
    const socket = createSocket('udp4');
    const ask = async (bytes: Uint8Array): Promise<Buffer> => {
      socket.send(bytes, server.port, HOST);
      return (await once(socket, 'message'))[0];
    };
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(3), encode({ type: 'response', id: 1 })]) {
      socket.send(bytes, server.port, HOST);
    }
    const malformed = await ask(Buffer.concat([encode({ type: 'query', id: 7 }), Buffer.from([0xc0])]));
    expect(decode(malformed)).toMatchObject({ id: 7, rcode: 'FORMERR' });
    socket.close();
    expect(await resolver().resolve4('web.cluster.local')).toEqual(['10.96.0.10']);
  });

  const question = { name: 'web.cluster.local', type: 'A' } as const;
  const record = { ...question, data: '10.0.0.1' };
  const padding = { ...EDNS, options: [{ code: 12 as const, length: 4_096 }] };
  it.each([
    ['no question', {}],
    ['two questions', { questions: [question, question] }],
    [
      'five records of three kinds',
      { questions: [question], answers: [record, record], authorities: [record, record], additionals: [record] },
    ],
    ['five records', { questions: [question], additionals: [EDNS, record, record, record, record] }],
    ['more than 4,096 bytes', { questions: [question], additionals: [padding] }],
  ])('refuses %s before it reads them: a header may promise 65,535 in a few bytes', async (_case, parts) => {
    const socket = createSocket('udp4');
    socket.send(encode({ type: 'query', id: 9, ...parts }), server.port, HOST);
    const [answer] = await once(socket, 'message');
    expect(decode(answer)).toMatchObject({ id: 9, rcode: 'FORMERR' });
    socket.close();
  });

  it('answers up to 512 bytes over UDP, and 1,232 to a client that can read them', async () => {
    const socket = createSocket('udp4');
    onTestFinished(() => void socket.close());
    const sized = await serve({ answer: addressesByName });
    onTestFinished(() => sized.close());
    const ask = async (addresses: number, nameLength: number, additionals: readonly (typeof EDNS)[]) => {
      const questions = [{ name: String(addresses).padStart(nameLength, '0'), type: 'A' as const }];
      socket.send(encode({ type: 'query', id: 3, questions, additionals: [...additionals] }), sized.port, HOST);
      const [bytes] = (await once(socket, 'message')) as [Buffer];
      return { length: bytes.length, answer: decode(bytes) };
    };
    for (const [addresses, nameLength, additionals, outcome] of [
      [28, 18, [], [512, false, 28, 0]],
      [28, 19, [], [37, true, 0, 0]],
      [70, 13, [EDNS], [1_232, false, 70, 1]],
      [70, 14, [EDNS], [43, true, 0, 1]],
    ] as const) {
      const { length, answer } = await ask(addresses, nameLength, additionals);
      expect([length, answer.flag_tc, answer.answers?.length, answer.additionals?.length]).toEqual(outcome);
      expect(answer).toMatchObject({ id: 3, flag_aa: true, flag_ra: true, rcode: 'NOERROR' });
    }
    const other = { ...EDNS, type: 'TXT' as const, data: 'x' } as unknown as typeof EDNS;
    expect((await ask(1, 1, [other, EDNS])).answer.additionals).toEqual([EDNS]);
    expect((await ask(1, 1, [other])).answer.additionals).toEqual([]);
  });

  it('listens over both ways or not at all', async () => {
    const taken = createSocket('udp4');
    onTestFinished(() => void taken.close());
    await new Promise<void>((resolve) => taken.bind(0, HOST, resolve));
    const { port } = taken.address();
    await expect(serve({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const socket = connect(port, HOST);
    const [fault] = await once(socket, 'error');
    expect(fault).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('closes a connection without a question', async () => {
    const one = await serve({ idleMs: 20 });
    onTestFinished(() => one.close());
    await once(connect(one.port, HOST).resume(), 'close');
  });

  it.each([
    [[], undefined],
    [[0], undefined],
    [[0, 1], undefined],
    [
      [0, 0],
      [[], []],
    ],
    [
      [0, 1, 7],
      [[7], []],
    ],
    [
      [0, 1, 7, 0],
      [[7], [0]],
    ],
    [[1, 0, 7], undefined],
  ])('reads from the bytes %j of a stream %j', (bytes, parts) => {
    const first = firstMessage(Buffer.from(bytes));
    expect(first && [[...first.message], [...first.rest]]).toEqual(parts);
  });

  it('closes both ways, and the connections that clients keep', async () => {
    const one = await serve({});
    const kept = connect(one.port, HOST);
    await once(kept, 'connect');
    // Before a connection that is idle is closed.
    await Promise.all([one.close(), once(kept.resume(), 'close')]);
    const [fault] = await once(connect(one.port, HOST), 'error');
    expect(fault).toMatchObject({ code: 'ECONNREFUSED' });
    await (await serve({ port: one.port })).close();
  }, 8_000);

  const sizedPadding = (length: number) => ({ ...EDNS, options: [{ code: 12 as const, length }] });
  it.each([
    ['four records', { answers: [record], authorities: [record], additionals: [EDNS, record] }, 0],
    // A header, a question of 23 bytes, and 15 bytes of EDNS around the padding.
    ['4,096 bytes', { additionals: [sizedPadding(4_096 - 50)] }, 4_096],
  ])('accepts a question with %s', async (_case, parts, length) => {
    const socket = createSocket('udp4');
    onTestFinished(() => void socket.close());
    const bytes = encode({ type: 'query', id: 9, questions: [question], ...parts });
    if (length > 0) expect(bytes).toHaveLength(length);
    socket.send(bytes, server.port, HOST);
    expect(decode((await once(socket, 'message'))[0])).toMatchObject({ id: 9, rcode: 'NOERROR' });
  });

  it('answers up to 65,535 bytes over TCP', async () => {
    const sized = await serve({ answer: addressesByName });
    onTestFinished(() => sized.close());
    // A header, a question of 6 bytes around its name, and 17 for each address.
    for (const [nameLength, isWhole] of [
      [16, true],
      [17, false],
    ] as const) {
      const socket = connect(sized.port, HOST);
      onTestFinished(() => void socket.destroy());
      const name = '3853'.padStart(nameLength, '0');
      const bytes = encode({ type: 'query', id: 4, questions: [{ name, type: 'A' }] });
      socket.end(Buffer.concat([Buffer.from([0, bytes.length]), bytes]));
      let received = Buffer.alloc(0);
      for await (const piece of socket) {
        received = Buffer.concat([received, piece]);
        if (firstMessage(received) !== undefined) break;
      }
      const answer = firstMessage(received)?.message ?? Buffer.alloc(0);
      expect([answer.length, decode(answer).flag_tc]).toEqual(isWhole ? [65_535, false] : [35, true]);
    }
  });

  it('answers the questions of one connection in their order', async () => {
    const socket = connect(server.port, HOST);
    const names = ['web.cluster.local', 'mail.example', 'web.cluster.local'];
    const framed = names.map((name, id) => {
      const bytes = encode({ type: 'query', id, questions: [{ name, type: 'A' }] });
      return Buffer.concat([Buffer.from([0, bytes.length]), bytes]);
    });
    // In pieces that are no messages.
    const whole = Buffer.concat(framed);
    socket.write(whole.subarray(0, 1));
    await once(socket, 'connect');
    socket.write(whole.subarray(1));
    let received = Buffer.alloc(0);
    const ids: (number | undefined)[] = [];
    for await (const piece of socket) {
      received = Buffer.concat([received, piece]);
      while (received.length > 2 && received.length >= 2 + received.readUInt16BE(0)) {
        const length = received.readUInt16BE(0);
        ids.push(decode(received.subarray(2, 2 + length)).id);
        received = received.subarray(2 + length);
      }
      if (ids.length === names.length) break;
    }
    expect(ids).toEqual([0, 1, 2]);
    socket.destroy();
  });

  it('keeps no more answers for a client that does not read them than its connection holds', async () => {
    const long = Array.from({ length: 240 }, () => ({ name: 'x', type: 'TXT' as const, data: 'x'.repeat(250) }));
    const own = await serve({
      answer: (name) =>
        name === 'web.cluster.local'
          ? address(name, '10.96.0.10')
          : { kind: 'records', answers: long, additionals: [] },
      onQuestion: (outcome) => outcomes.push(outcome),
    });
    onTestFinished(() => own.close());
    const asked = 300;
    const bytes = encode({ type: 'query', id: 1, questions: [{ name: 'x', type: 'TXT' }] });
    const framed = Buffer.concat([Buffer.from([0, bytes.length]), bytes]);
    const greedy = connect({ port: own.port, host: HOST, localAddress: '127.0.0.2' });
    onTestFinished(() => void greedy.destroy());
    greedy.write(Buffer.concat(Array.from({ length: asked }, () => framed)));
    // Meanwhile the server has time to answer the others.
    const others = createSocket('udp4');
    onTestFinished(() => void others.close());
    const question = encode({ type: 'query', id: 2, questions: [{ name: 'web.cluster.local', type: 'A' }] });
    for (let count = 0; count < asked; count += 1) {
      others.send(question, own.port, HOST);
      await once(others, 'message');
    }
    expect(outcomes.length).toBeGreaterThan(asked);
    // 300 answers are 19 MB; the kernel holds 10 MB at most.
    expect(outcomes.length - asked).toBeLessThan(asked);
  });

  it('leaves connections to others when one client keeps as many as it can', async () => {
    const greedy = Array.from({ length: 70 }, () =>
      connect({ port: server.port, host: HOST, localAddress: '127.0.0.2' }),
    );
    onTestFinished(() => {
      for (const socket of greedy) socket.destroy();
    });
    for (const socket of greedy) socket.on('error', () => undefined).resume();
    const isRefused = (): boolean => greedy.filter(({ closed }) => closed).length === 38;
    await until(isRefused, { withinMs: 5_000, everyMs: 5 });
    expect(await resolver().resolve4('many.cluster.local')).toHaveLength(200);
  });

  it('asks others no more questions at a time than its bounds, and still answers names of the cluster', async () => {
    const silent = createSocket('udp4');
    await new Promise<void>((resolve) => silent.bind(0, HOST, resolve));
    const busy = await serve({
      resolvers: async () => [HOST],
      resolverPort: silent.address().port,
      onQuestion: (outcome) => outcomes.push(outcome),
    });
    let forwarded = 0;
    silent.on('message', () => {
      forwarded += 1;
    });
    const dropped = (): number => outcomes.filter((outcome) => outcome === 'dropped').length;
    const clients = ['127.0.0.2', '127.0.0.3', '127.0.0.4'].map((host) => {
      const socket = createSocket('udp4');
      socket.bind({ address: host });
      return socket;
    });
    const send = async (client: number, count: number, isReceived: () => boolean): Promise<void> => {
      const question = encode({ type: 'query', id: 1, questions: [{ name: 'slow.example', type: 'A' }] });
      // Not more at once than the buffer of a socket holds.
      for (let index = 0; index < count; index += 1) clients[client]?.send(question, busy.port, HOST);
      await until(isReceived, { withinMs: 1_000, everyMs: 5 });
    };
    // Before the first question is given up: on a slow machine again, when all have been.
    const fill = async (): Promise<string[]> => {
      forwarded = 0;
      outcomes = [];
      await send(0, 64, () => forwarded === 64);
      await send(0, 74, () => dropped() === 10);
      expect(forwarded).toBe(128);
      await send(1, 128, () => forwarded === 256);
      await send(2, 5, () => dropped() === 15);
      return resolver(busy.port).resolve4('web.cluster.local');
    };
    expect(await until(fill, { withinMs: 30_000, everyMs: 2_000 })).toEqual(['10.96.0.10']);
    for (const client of clients) client.close();
    silent.close();
    await busy.close();
  });

  it('forwards any number of questions, one after the other', async () => {
    const socket = createSocket('udp4');
    onTestFinished(() => void socket.close());
    const question = encode({ type: 'query', id: 1, questions: [{ name: 'mail.example', type: 'A' }] });
    for (let count = 0; count < 130; count += 1) {
      socket.send(question, server.port, HOST);
      await once(socket, 'message');
    }
    expect(outcomes).toEqual(Array.from({ length: 130 }, () => 'forwarded'));
  });

  it('does not answer a client that asks in a loop, and meanwhile others', async () => {
    const flood = createSocket('udp4');
    flood.bind({ address: '127.0.0.2' });
    const question = encode({ type: 'query', id: 1, questions: [{ name: 'web.cluster.local', type: 'A' }] });
    const isDropped = (): boolean => outcomes.includes('dropped');
    const bound = { withinMs: 20_000, everyMs: 1 };
    await until(() => {
      for (let index = 0; index < 100; index += 1) flood.send(question, server.port, HOST);
      return isDropped();
    }, bound);
    // The kernel may drop a question while the flood is still in its buffer.
    expect(await until(() => resolver().resolve4('web.cluster.local'), bound)).toEqual(['10.96.0.10']);
    flood.close();
  });
});

describe('the rate of questions', () => {
  const accepted = (rate: QuestionRate, client: string, nowMs: number): number =>
    Array.from({ length: 1_500 }, () => rate.isTooOften(client, nowMs)).filter((isTooOften) => !isTooOften).length;

  it('is a thousand in a second for one client, and two thousand for all: one client uses its own share alone', () => {
    const rate = new QuestionRate();
    const inOneSecond = [accepted(rate, 'a', 5_000), accepted(rate, 'b', 5_999), accepted(rate, 'c', 5_999)];
    expect(inOneSecond).toEqual([1_000, 1_000, 0]);
    expect([accepted(rate, 'a', 6_000), accepted(rate, 'a', 6_500)]).toEqual([1_000, 0]);
    expect(accepted(rate, 'a', 7_000)).toBe(1_000);
  });
});
