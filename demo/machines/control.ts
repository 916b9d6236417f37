/** Commands to the real machines of a running demonstration, over its control socket. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ControlOutcome, sendControl, serveControl } from '../../shared/host/control-socket.ts';
import { type ListedMachine, Machine, type MachineOptions } from './machine.ts';

/** File name of the socket inside the data directory. */
export const MACHINE_SOCKET = 'machine.sock';

export type MachineCommand = { readonly verb: 'list' } | { readonly verb: MachineVerb; readonly name: string };

const VERBS = ['join', 'cutLink', 'restoreLink', 'powerCycle'] as const;
export type MachineVerb = (typeof VERBS)[number];

export type MachineReply =
  | { readonly kind: 'listed'; readonly machines: readonly ListedMachine[] }
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'malformed'; readonly why: string };

export interface MachinesOptions {
  /** Of the cluster; each machine has a directory in `machines/`. */
  readonly dataDirectory: string;
  readonly cluster: MachineOptions['cluster'];
  /** A bootstrap token for the node with this name. Rejects when the cluster does not create it. */
  createToken(nodeName: string): Promise<string>;
}

export interface Machines {
  /** Ends the machines too. */
  stop(): Promise<void>;
}

/** Serves the commands, and starts the machines that joined before. @throws ControlError */
export async function serveMachines(options: MachinesOptions): Promise<Machines> {
  const machines = new LocalMachines(options);
  const control = await serveControl(join(options.dataDirectory, MACHINE_SOCKET), (command) => machines.obey(command));
  await machines.startAgain();
  return {
    async stop() {
      await control.close();
      await machines.stop();
    },
  };
}

/** @throws ControlError for a malformed answer */
export const sendMachineCommand = (path: string, command: MachineCommand): Promise<ControlOutcome<MachineReply>> =>
  sendControl<MachineReply>(path, command);

const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
/** Each is a process of about 150 MB. */
const MACHINES_MAX = 5;

class LocalMachines {
  readonly #options: MachinesOptions;
  readonly #machines = new Map<string, Machine>();
  /** One command at a time. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  obey(value: unknown): Promise<MachineReply> {
    const command = parseCommand(value);
    if (command === undefined) {
      const why = 'a command is {"verb": "list|join|cutLink|restoreLink|powerCycle", "name": …}';
      return Promise.resolve({ kind: 'malformed', why });
    }
    const reply = this.#turn.then(() => this.#obey(command));
    this.#turn = reply.catch(() => undefined);
    return reply;
  }

  async startAgain(): Promise<void> {
    for (const name of namesIn(this.#directory())) {
      await this.#start(name).catch((cause: Error) => {
        // The cluster and the other machines run without it, and `list` does not have it.
        console.error(`nodekeeper: machine ${name} does not start again: ${cause.message}`);
      });
    }
  }

  async stop(): Promise<void> {
    await this.#turn;
    await Promise.all([...this.#machines.values()].map((machine) => machine.stop()));
  }

  async #obey(command: MachineCommand): Promise<MachineReply> {
    if (command.verb === 'list') {
      return { kind: 'listed', machines: [...this.#machines.values()].map((machine) => machine.listed()) };
    }
    if (command.verb === 'join') return this.#join(command.name);
    const machine = this.#machines.get(command.name);
    if (machine === undefined) return { kind: 'refused', why: `no such machine: ${command.name}` };
    await machine[command.verb]();
    return { kind: 'done' };
  }

  async #join(name: string): Promise<MachineReply> {
    if (!NODE_NAME.test(name)) return { kind: 'refused', why: `${name} is no name of a node, such as site-1` };
    if (this.#machines.has(name)) return { kind: 'refused', why: `${name} has joined already` };
    if (this.#machines.size === MACHINES_MAX) return { kind: 'refused', why: `there are ${MACHINES_MAX} machines` };
    try {
      await this.#start(name, await this.#options.createToken(name));
    } catch (cause) {
      return { kind: 'refused', why: `${name}: ${(cause as Error).message}` };
    }
    return { kind: 'done' };
  }

  async #start(name: string, bootstrapToken?: string): Promise<void> {
    const { cluster } = this.#options;
    const of = { name, directory: join(this.#directory(), name), cluster };
    const machine = await Machine.start(bootstrapToken === undefined ? of : { ...of, bootstrapToken });
    this.#machines.set(name, machine);
  }

  #directory(): string {
    return join(this.#options.dataDirectory, 'machines');
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((name) => NODE_NAME.test(name));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw cause;
  }
}

function parseCommand(value: unknown): MachineCommand | undefined {
  const { verb, name } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (verb === 'list') return { verb };
  if (typeof name !== 'string') return undefined;
  const known = VERBS.find((each) => each === verb);
  return known === undefined ? undefined : { verb: known, name };
}
