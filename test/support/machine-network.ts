/** Machines of one site as network namespaces, which a bridge connects. Root and iproute2 are needed. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { KubeEndpointSlice, KubeService } from '../../shared/kinds/types.ts';

const PROGRAM = fileURLToPath(new URL('machine-network-program.mjs', import.meta.url));
const COMMAND_MS = 20_000;

/** Why this machine has no network namespaces; undefined: it has. */
export function missingNamespaces(): string | undefined {
  const name = `nk${process.pid}probe`;
  const made = spawnSync('ip', ['netns', 'add', name], { encoding: 'utf8' });
  if (made.status !== 0) return `ip netns add: ${made.error?.message ?? made.stderr.trim()}`;
  const listed = spawnSync('ip', ['netns', 'exec', name, 'nft', 'list', 'ruleset'], { encoding: 'utf8' });
  spawnSync('ip', ['netns', 'delete', name]);
  return listed.status === 0 ? undefined : `nft: ${listed.stderr.trim()}`;
}

function ip(args: string): void {
  const { status, stderr, error } = spawnSync('ip', args.split(' '), { encoding: 'utf8', timeout: COMMAND_MS });
  if (status !== 0) throw new Error(`ip ${args}: ${error?.message ?? stderr}`);
}

function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (cause) {
    // It ended meanwhile.
    if ((cause as NodeJS.ErrnoException).code !== 'ESRCH') throw cause;
  }
}

/** Outcome of one connection: the text of the server, or the code of the error. */
export type Reached = string;

/** A machine, and the programs on it: servers that answer with their name, and clients. */
export class NetworkMachine {
  readonly address: string;
  /** fd00:11::N for the last number N of the other address. */
  readonly address6: string;
  readonly namespace: string;
  readonly #program: ChildProcess;
  readonly #answers = new Map<number, (answer: unknown) => void>();
  #count = 0;

  constructor(namespace: string, address: string) {
    this.namespace = namespace;
    this.address = address;
    this.address6 = `fd00:11::${address.split('.').at(-1)}`;
    this.#program = spawn('ip', ['netns', 'exec', namespace, process.execPath, PROGRAM], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    createInterface({ input: this.#program.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { id, answer } = JSON.parse(line) as { id: number; answer: unknown };
      this.#answers.get(id)?.(answer);
      this.#answers.delete(id);
    });
  }

  /** Answers connections to this port with the name. */
  async serve(port: number, name: string, address = '::'): Promise<void> {
    await this.#call({ kind: 'serve', port, name, address });
  }

  /** Connects one after the other. */
  connect(address: string, port: number, times = 1): Promise<readonly Reached[]> {
    return this.#call({ kind: 'connect', address, port, times }) as Promise<readonly Reached[]>;
  }

  /** Text of an answer by HTTP, over a connection of its own. */
  get(url: string): Promise<Reached> {
    return this.#call({ kind: 'get', url }) as Promise<Reached>;
  }

  /** Answers names of these Services at this address, which the machine has afterwards. */
  async serveNames(
    address: string,
    services: readonly KubeService[],
    slices: readonly KubeEndpointSlice[],
  ): Promise<void> {
    ip(`-n ${this.namespace} address replace ${address}/32 dev lo`);
    await this.#call({ kind: 'names', address, services, slices });
  }

  /** Records of a name, by the resolver at this address; the code of the error if there are none. */
  resolve(server: string, name: string, type = 'A'): Promise<unknown> {
    return this.#call({ kind: 'resolve', server, name, type });
  }

  async close(): Promise<void> {
    if (this.#program.exitCode !== null) return;
    const closed = once(this.#program, 'close');
    this.#program.stdin?.end();
    await closed;
  }

  #call(request: object): Promise<unknown> {
    this.#count += 1;
    const id = this.#count;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${JSON.stringify(request)}`)), COMMAND_MS);
      this.#answers.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      this.#program.stdin?.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }
}

export interface MachineNetwork {
  readonly machines: readonly NetworkMachine[];
  /** Removes the cable of this machine. */
  cut(machine: NetworkMachine): void;
  /** A pod with an address of its own behind this machine, as those of podman. */
  addPod(machine: NetworkMachine, address: string, gateway: string): NetworkMachine;
  close(): Promise<void>;
}

/** @param addresses one per machine, in one network of 24 bits */
export function machineNetwork(addresses: readonly string[]): MachineNetwork {
  const prefix = `nk${process.pid}`;
  const namespaces: string[] = [];
  const all: NetworkMachine[] = [];
  const namespace = (name: string): string => {
    ip(`netns add ${name}`);
    namespaces.push(name);
    ip(`-n ${name} link set lo up`);
    return name;
  };
  /** A cable between two namespaces. */
  const connect = (one: string, inOne: string, other: string, inOther: string): void => {
    ip(`-n ${one} link add ${inOne} type veth peer name ${inOther} netns ${other}`);
    ip(`-n ${one} link set ${inOne} up`);
    ip(`-n ${other} link set ${inOther} up`);
  };
  const start = (name: string, address: string): NetworkMachine => {
    const machine = new NetworkMachine(name, address);
    all.push(machine);
    return machine;
  };
  const site = namespace(`${prefix}site`);
  ip(`-n ${site} link add site type bridge`);
  ip(`-n ${site} link set site up`);
  const gateway = `${addresses[0]?.split('.').slice(0, 3).join('.')}.254`;
  const gateway6 = 'fd00:11::254';
  ip(`-n ${site} address add ${gateway}/24 dev site`);
  ip(`-n ${site} address add ${gateway6}/64 dev site nodad`);
  const machines = addresses.map((address, index) => {
    const name = namespace(`${prefix}m${index}`);
    connect(site, `m${index}`, name, 'eth0');
    ip(`-n ${site} link set m${index} master site`);
    ip(`-n ${name} address add ${address}/24 dev eth0`);
    ip(`-n ${name} route add default via ${gateway}`);
    const machine = start(name, address);
    ip(`-n ${name} address add ${machine.address6}/64 dev eth0 nodad`);
    ip(`-n ${name} route add default via ${gateway6}`);
    return machine;
  });
  return {
    machines,
    cut: (machine) => ip(`-n ${machine.namespace} link set eth0 down`),
    addPod(machine, address, podGateway) {
      const name = namespace(`${prefix}p${namespaces.length}`);
      const bridge = 'podman0';
      if (spawnSync('ip', ['-n', machine.namespace, 'link', 'show', bridge]).status !== 0) {
        ip(`-n ${machine.namespace} link add ${bridge} type bridge`);
        ip(`-n ${machine.namespace} link set ${bridge} up`);
        ip(`-n ${machine.namespace} address add ${podGateway}/24 dev ${bridge}`);
        // As podman: packets of others are forwarded, and those of pods leave with the address of the machine.
        const network = `${podGateway}/24`;
        const rule = `ip saddr ${network} ip daddr != ${network} masquerade`;
        const table = `table ip podman { chain leave { type nat hook postrouting priority srcnat; ${rule}; }; }`;
        const script = `echo 1 >/proc/sys/net/ipv4/ip_forward && nft '${table}'`;
        const { status, stderr } = spawnSync('ip', ['netns', 'exec', machine.namespace, 'sh', '-c', script]);
        if (status !== 0) throw new Error(`${script}: ${stderr}`);
      }
      const cable = `v${namespaces.length}`;
      connect(machine.namespace, cable, name, 'eth0');
      ip(`-n ${machine.namespace} link set ${cable} master ${bridge}`);
      // A packet may leave by the port it came from: a pod that reaches itself.
      ip(`-n ${machine.namespace} link set ${cable} type bridge_slave hairpin on`);
      ip(`-n ${name} address add ${address}/24 dev eth0`);
      ip(`-n ${name} route add default via ${podGateway}`);
      return start(name, address);
    },
    async close() {
      await Promise.all(all.map((machine) => machine.close()));
      for (const name of namespaces) {
        // Pods outlive their agent.
        const { stdout } = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' });
        for (const pid of stdout.split('\n').map(Number)) if (pid > 0) endNow(pid);
        spawnSync('ip', ['netns', 'delete', name]);
      }
    },
  };
}
