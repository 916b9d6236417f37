/**
 * Answers names of the cluster over UDP and TCP, and asks the resolvers of the machine about all others.
 *
 * Questions to others are passed on as they are, with another number from another port, and so are the answers: what
 * this program does not know, it does not change. Bounds: questions and connections at a time, bytes and time of each.
 */
import { randomInt } from 'node:crypto';
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram';
import { once, setMaxListeners } from 'node:events';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import {
  type Answer,
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  type Packet,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { defined } from '../../../shared/defined.ts';
import { written } from '../../../shared/host/written.ts';
import type { QuestionOutcome } from '../../app/services/service-parts.ts';
import type { NameAnswer, NameRecord } from '../../rules/services/names.ts';
import { TTL_SECONDS } from '../../rules/services/names.ts';
import { listenOn } from '../relay/relay-server.ts';

const DNS_PORT = 53;
/**
 * Questions to the resolvers of the machine at a time, together and of one client. More get no answer over UDP, and are
 * closed over TCP: clients ask again. Names of the cluster are answered meanwhile, also where no resolver answers.
 */
const FORWARDS_MAX = 256;
const CLIENT_FORWARDS_MAX = 128;
/** A pod that asks in a loop must not delay the heartbeats of its machine. */
const QUESTIONS_PER_SECOND_MAX = 2_000;
const CLIENT_QUESTIONS_PER_SECOND_MAX = 1_000;
const SECOND_MS = 1_000;
/** Together and of one client: one that keeps all it can leaves as many to others. */
const CONNECTIONS_MAX = 64;
const CLIENT_CONNECTIONS_MAX = 32;
const RESOLVERS_MAX = 3;
/** Three that do not answer are known before a client gives up after 5 s. */
const RESOLVER_MS = 1_500;
const IDLE_MS = 10_000;
/** Of an answer over UDP without and with EDNS: the second is what fits a packet everywhere (DNS flag day 2020). */
const PLAIN_BYTES = 512;
const EDNS_BYTES = 1_232;
const HEADER_BYTES = 12;
/** A question has one name; its records are for EDNS and signatures. */
const QUERY_BYTES_MAX = 4_096;
const QUERY_RECORDS_MAX = 4;
const RESPONSE_BIT = 0x80;
const LENGTH_BYTES = 2;
/** Aliases that lead to aliases. */
const ALIASES_MAX = 8;
const FORMAT_ERROR = 1;
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;

export interface NameServerOptions {
  readonly address: string;
  /** 53; another one for tests. 0: any free port. */
  readonly port?: number;
  /** Of the cluster, such as cluster.local. */
  readonly domain: string;
  readonly answer: (name: string, type: string) => NameAnswer;
  /** Addresses of the resolvers of the machine, in the order in which they are asked. */
  readonly resolvers: () => Promise<readonly string[]>;
  /** Port of these resolvers: 53; another one for tests. */
  readonly resolverPort?: number;
  /** After it a connection without a question is closed: 10 s; another time for tests. */
  readonly idleMs?: number;
  readonly onQuestion?: (outcome: QuestionOutcome) => void;
}

export interface NameServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Rejects if it cannot listen. */
export async function serveNames(options: NameServerOptions): Promise<NameServer> {
  const questions = new Questions(options);
  const server = createServer((socket) => questions.serve(socket));
  server.maxConnections = CONNECTIONS_MAX;
  await listenOn(server, { address: options.address, port: options.port ?? DNS_PORT });
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : DNS_PORT;
  const closeServer = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
  const udp = createSocket(isIPv6(options.address) ? 'udp6' : 'udp4');
  try {
    await once(udp.bind({ address: options.address, port }), 'listening');
  } catch (cause) {
    await closeServer();
    throw cause;
  }
  udp.on('error', () => undefined);
  udp.on('message', (bytes, from) => questions.receive(bytes, from, udp));
  return {
    port,
    async close() {
      questions.close();
      await Promise.all([closeServer(), new Promise<void>((resolve) => udp.close(() => resolve()))]);
    },
  };
}

/** How a question reaches the resolvers of the machine. */
type Way = 'udp' | 'tcp';

/** Counts questions by the second. A flood costs less than its answers would. */
export class QuestionRate {
  readonly #byClient = new Map<string, number>();
  #all = 0;
  #second = 0;

  isTooOften(client: string, nowMs: number): boolean {
    const second = Math.floor(nowMs / SECOND_MS);
    if (second !== this.#second) {
      this.#byClient.clear();
      this.#all = 0;
      this.#second = second;
    }
    const own = (this.#byClient.get(client) ?? 0) + 1;
    this.#byClient.set(client, own);
    // What one client asks too often does not count for the others.
    if (own > CLIENT_QUESTIONS_PER_SECOND_MAX) return true;
    this.#all += 1;
    return this.#all > QUESTIONS_PER_SECOND_MAX;
  }
}

class Questions {
  readonly #options: NameServerOptions;
  readonly #stop = new AbortController();
  /** Questions to resolvers now. */
  readonly #forwards = new Set<{ readonly client: string }>();
  readonly #rate = new QuestionRate();
  /** Of open connections. */
  readonly #clients: string[] = [];

  constructor(options: NameServerOptions) {
    this.#options = options;
    // A listener per connection and per question to others, each bounded.
    setMaxListeners(0, this.#stop.signal);
  }

  close(): void {
    this.#stop.abort();
  }

  receive(bytes: Buffer, { address, port }: RemoteInfo, udp: UdpSocket): void {
    void this.#reply(bytes, 'udp', address).then((answer) => {
      if (answer !== undefined && !this.#stop.signal.aborted) udp.send(answer, port, address, () => undefined);
    });
  }

  /** One question after the other: the answers are in their order. */
  serve(socket: Socket): void {
    const client = String(socket.remoteAddress);
    if (this.#clients.filter((each) => each === client).length >= CLIENT_CONNECTIONS_MAX) {
      socket.destroy();
      return;
    }
    this.#clients.push(client);
    socket.on('close', () => this.#clients.splice(this.#clients.indexOf(client), 1));
    addAbortSignal(this.#stop.signal, socket);
    // An error has destroyed the socket.
    socket.on('error', () => undefined);
    socket.setTimeout(this.#options.idleMs ?? IDLE_MS, () => socket.destroy());
    let received = Buffer.alloc(0);
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      const first = firstMessage(received);
      if (first === undefined) return;
      received = Buffer.alloc(0);
      socket.pause();
      void this.#reply(first.message, 'tcp', client).then(async (answer) => {
        if (answer === undefined) socket.destroy();
        // A client that does not read its answers gets no more: they would wait in the memory of the agent.
        else await written(socket, framed(answer));
        if (socket.destroyed) return;
        socket.unshift(first.rest);
        socket.resume();
      });
    });
  }

  /** Undefined: too many at a time. */
  async #forwarding<T>(client: string, work: () => Promise<T>): Promise<{ readonly value: T } | undefined> {
    const own = [...this.#forwards].filter((each) => each.client === client).length;
    if (this.#forwards.size >= FORWARDS_MAX || own >= CLIENT_FORWARDS_MAX) {
      this.#options.onQuestion?.('dropped');
      return undefined;
    }
    const forward = { client };
    this.#forwards.add(forward);
    try {
      return { value: await work() };
    } finally {
      this.#forwards.delete(forward);
    }
  }

  #isTooOften(client: string): boolean {
    const isTooOften = this.#rate.isTooOften(client, performance.now());
    if (isTooOften) this.#options.onQuestion?.('dropped');
    return isTooOften;
  }

  async #reply(bytes: Buffer, way: Way, client: string): Promise<Buffer | undefined> {
    if (this.#stop.signal.aborted || this.#isTooOften(client)) return undefined;
    // Answers are not answered: two servers would never stop.
    if (bytes.length < HEADER_BYTES || (bytes[2]! & RESPONSE_BIT) !== 0) return undefined;
    const query = isOneQuestion(bytes) ? decoded(bytes) : undefined;
    const [question] = query?.questions ?? [];
    if (query === undefined || question === undefined) {
      return encode({ id: bytes.readUInt16BE(0), type: 'response', flags: FORMAT_ERROR });
    }
    const found = this.#options.answer(question.name, question.type);
    if (found.kind === 'elsewhere') {
      const forwarded = await this.#forwarding(client, () => this.#forwarded(bytes, way));
      if (forwarded === undefined) return undefined;
      this.#options.onQuestion?.(forwarded.value === undefined ? 'failed' : 'forwarded');
      return forwarded.value ?? response(query, { rcode: SERVER_FAILURE }, way);
    }
    this.#options.onQuestion?.('cluster');
    if (found.kind === 'unknown')
      return response(query, { rcode: NO_SUCH_NAME, authorities: [this.#authority()] }, way);
    if (found.kind === 'alias') return response(query, await this.#followed(found, question.type, client), way);
    const { answers, additionals } = found;
    const authorities = answers.length === 0 ? [this.#authority()] : [];
    return response(
      query,
      { answers: answers.map(recordOf), additionals: additionals.map(recordOf), authorities },
      way,
    );
  }

  /** The alias and the records behind it. A client asks one question alone. */
  async #followed(alias: Extract<NameAnswer, { kind: 'alias' }>, type: string, client: string): Promise<Reply> {
    const answers: Answer[] = [];
    let found: NameAnswer = alias;
    for (let count = 0; count < ALIASES_MAX && found.kind === 'alias'; count += 1) {
      answers.push(recordOf(found.record));
      if (type === 'CNAME') return { answers };
      const { target }: { target: string } = found;
      found = this.#options.answer(target, type);
      if (found.kind === 'elsewhere') {
        const asked = await this.#forwarding(client, () => this.#asked(target, type));
        return { answers: [...answers, ...(asked?.value ?? [])] };
      }
    }
    if (found.kind === 'records') answers.push(...found.answers.map(recordOf));
    return { answers };
  }

  async #asked(name: string, type: string): Promise<readonly Answer[]> {
    const question = { name: name.replace(/\.$/, ''), type: type as 'A' };
    const query = encode({ id: 0, type: 'query', flags: RECURSION_DESIRED, questions: [question] });
    const answer = await this.#forwarded(query, 'tcp').then((bytes) => bytes ?? this.#forwarded(query, 'udp'));
    return (answer === undefined ? undefined : decoded(answer))?.answers ?? [];
  }

  /** The answer of the first resolver that answers; undefined: none does. */
  async #forwarded(bytes: Buffer, way: Way): Promise<Buffer | undefined> {
    const { resolvers, resolverPort = DNS_PORT, address } = this.#options;
    for (const host of resolversToAsk(await resolvers(), resolverPort === DNS_PORT ? address : undefined)) {
      const numbered = Buffer.from(bytes);
      numbered.writeUInt16BE(randomInt(0x1_0000), 0);
      const ask = way === 'udp' ? askByUdp : askByTcp;
      const answer = await ask(
        numbered,
        host,
        resolverPort,
        AbortSignal.any([this.#stop.signal, AbortSignal.timeout(RESOLVER_MS)]),
      );
      if (answer === undefined) continue;
      answer.writeUInt16BE(bytes.readUInt16BE(0), 0);
      return answer;
    }
    return undefined;
  }

  /** For how long clients may remember that a name does not exist. */
  #authority(): Answer {
    const { domain } = this.#options;
    const data = {
      mname: `ns.dns.${domain}`,
      rname: `hostmaster.${domain}`,
      serial: 1,
      refresh: 7_200,
      retry: 1_800,
      expire: 86_400,
      minimum: TTL_SECONDS,
    };
    return { name: domain, type: 'SOA', ttl: TTL_SECONDS, data };
  }
}

interface Reply {
  readonly rcode?: number;
  readonly answers?: readonly Answer[];
  readonly authorities?: readonly Answer[];
  readonly additionals?: readonly Answer[];
}

/** What does not fit is left out, with the flag that makes a client ask again over TCP. */
function response(
  query: Packet,
  { rcode = 0, answers = [], authorities = [], additionals = [] }: Reply,
  way: Way,
): Buffer {
  const edns = query.additionals?.find((each) => each.type === 'OPT');
  const wanted = (query.flags ?? 0) & RECURSION_DESIRED;
  const common = {
    ...defined({ id: query.id }),
    type: 'response' as const,
    questions: query.questions ?? [],
  };
  const flags = AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | wanted | rcode;
  const option: Answer[] =
    edns === undefined
      ? []
      : [
          {
            type: 'OPT',
            name: '.',
            udpPayloadSize: EDNS_BYTES,
            flags: 0,
            options: [],
            extendedRcode: 0,
            ednsVersion: 0,
            flag_do: false,
          },
        ];
  const whole = encode({
    ...common,
    flags,
    answers: [...answers],
    authorities: [...authorities],
    additionals: [...additionals, ...option],
  });
  if (way === 'tcp' ? whole.length < 0x1_0000 : whole.length <= (edns === undefined ? PLAIN_BYTES : EDNS_BYTES))
    return whole;
  return encode({ ...common, flags: flags | TRUNCATED_RESPONSE, additionals: option });
}

const recordOf = (record: NameRecord): Answer => ({ ...record, ttl: TTL_SECONDS }) as Answer;

/**
 * By the header. The decoder makes as many questions and records as it says, whatever bytes follow: 44 bytes of a pod
 * would keep the agent busy for a third of a second.
 */
function isOneQuestion(bytes: Buffer): boolean {
  const records = bytes.readUInt16BE(6) + bytes.readUInt16BE(8) + bytes.readUInt16BE(10);
  return bytes.readUInt16BE(4) === 1 && records <= QUERY_RECORDS_MAX && bytes.length <= QUERY_BYTES_MAX;
}

function decoded(bytes: Buffer): Packet | undefined {
  try {
    return decode(bytes);
  } catch {
    return undefined;
  }
}

/** @param own the address of this server: asked itself, it would ask itself again */
export const resolversToAsk = (all: readonly string[], own: string | undefined): readonly string[] =>
  all.filter((each) => each !== own).slice(0, RESOLVERS_MAX);

const isAnswerTo = (question: Buffer, answer: Buffer): boolean =>
  answer.length >= HEADER_BYTES && answer.readUInt16BE(0) === question.readUInt16BE(0);

/** Of a TCP stream, and what follows. Undefined: more bytes are to come. */
export function firstMessage(received: Buffer): { readonly message: Buffer; readonly rest: Buffer } | undefined {
  if (received.length < LENGTH_BYTES) return undefined;
  const end = LENGTH_BYTES + received.readUInt16BE(0);
  if (received.length < end) return undefined;
  return { message: received.subarray(LENGTH_BYTES, end), rest: received.subarray(end) };
}

function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** A connected socket has another port each time, and accepts answers of that resolver alone. */
const askByUdp = (bytes: Buffer, host: string, port: number, stop: AbortSignal): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
    let isEnded = false;
    const end = (answer?: Buffer): void => {
      if (isEnded) return;
      isEnded = true;
      stop.removeEventListener('abort', onAbort);
      socket.removeAllListeners('message');
      socket.close();
      resolve(answer);
    };
    const onAbort = (): void => end();
    socket.on('error', onAbort);
    socket.on('message', (answer) => {
      if (isAnswerTo(bytes, answer)) end(answer);
    });
    stop.addEventListener('abort', onAbort, { once: true });
    // Its argument is the error, if there is one: no error event follows.
    socket.connect(port, host, (...faults: readonly unknown[]) => {
      if (faults[0] instanceof Error) end();
      else socket.send(bytes, (fault) => fault && end());
    });
  });

const askByTcp = (bytes: Buffer, host: string, port: number, stop: AbortSignal): Promise<Buffer | undefined> =>
  new Promise((resolve) => {
    let received = Buffer.alloc(0);
    const socket = connect({ host, port, signal: stop }, () => socket.write(framed(bytes)));
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      const first = firstMessage(received);
      if (first === undefined) return;
      resolve(isAnswerTo(bytes, first.message) ? first.message : undefined);
      socket.destroy();
    });
    socket.on('error', () => resolve(undefined));
    socket.on('close', () => resolve(undefined));
  });
