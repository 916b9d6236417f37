import { parseArgs } from 'node:util';
import type { BillSettings } from './bill.ts';

export interface CostOptions extends Omit<BillSettings, 'nodes' | 'lambdaTime' | 'idlePollers'> {
  /** One bill per number of nodes. */
  readonly nodes: readonly number[];
  /** A policy file with profiles: the heartbeat interval is that of their mix. Absent: `beatSeconds` for every node. */
  readonly profiles: string | undefined;
  /** Share of the nodes by profile, `default` included; absent: equal shares. */
  readonly mix: ReadonlyMap<string, number> | undefined;
  /** All ways of heartbeats, intervals and capacity modes, in place of the settings above. */
  readonly table: boolean;
  readonly json: boolean;
  /** A recorded measurement. Absent: measure now. */
  readonly from: string | undefined;
  readonly save: string | undefined;
  /** A custom price list, JSON. */
  readonly prices: string | undefined;
  readonly fleets: readonly number[];
  /** Schedules fire once per minute. */
  readonly minutes: number;
  /** One sweep of pod-gc runs in a quarter of an hour. */
  readonly idleMinutes: number;
}

export const USAGE = `usage: npm run cost -- --nodes N[,N…] [options]

  --table              a node's cost by way of its heartbeats, interval (10 s, 60 s, the mix of --profiles)
                       and capacity mode, at 100, 1,000 and 10,000 nodes
  --nodes N[,N…]       sizes of the fleet (1000); 0 is the idle cluster
  --beat SECONDS       between two beats of a node (10)
  --profiles FILE      a policy file with profiles: bills their mix in place of --beat
  --mix NAME=SHARE,…   share of the nodes per profile, of default too (equal shares)
  --door WAY           api or url: heartbeats through the HTTP API or the URL of function heartbeat (api)
  --relay MACHINES     machines that send their heartbeats through one relay (0: no relays)
  --billing KIND       onDemand or provisioned (onDemand)
  --watchers W         watches held at any time (0)
  --abandoned-watches W  watches per day with a client that disconnects (10); each runs on for 5 minutes
  --failures F         times per month that a node becomes not Ready and Ready again (1)
  --connections C      new TLS connections per node and day (24)
  --pods-per-node P    pods a node runs, each living a day (0)
  --zones Z            zones the nodes are in (3)
  --prices FILE        a price list of your own, JSON (that of shared/cost/prices.ts)
  --from FILE          count with a recorded measurement; bench/cost/measurement.json is one
  --save FILE          keep what is measured
  --fleets N,N         sizes of the fleets to measure (50,200)
  --minutes M          length of each measurement (1)
  --idle-minutes M     length of that of an idle cluster (1); 15 counts what is done each quarter of an hour as well
  --json               for machines`;

const TABLE_NODES = [100, 1_000, 10_000];

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws UsageError with the name of the option */
export function parseCostOptions(args: readonly string[]): CostOptions | 'help' {
  const values = parsed(args);
  if (values.help === true) return 'help';
  const billing = values.billing ?? 'onDemand';
  if (billing !== 'onDemand' && billing !== 'provisioned') {
    throw new UsageError(`--billing expects onDemand or provisioned, not ${billing}`);
  }
  const door = values.door ?? 'api';
  if (door !== 'api' && door !== 'url') throw new UsageError(`--door expects api or url, not ${door}`);
  const table = values.table ?? false;
  if (table && values.json === true) throw new UsageError('--table prints no JSON: leave out --json');
  const number = (name: string, text: string | undefined, fallback: number, least: number): number => {
    const value = text === undefined ? fallback : Number(text);
    if (!Number.isFinite(value) || value < least)
      throw new UsageError(`--${name} expects a number from ${least}, not ${text}`);
    return value;
  };
  const wholes = (name: string, text: string | undefined, fallback: readonly number[], least: number): number[] => {
    const numbers = text === undefined ? [...fallback] : text.split(',').map(Number);
    if (numbers.length === 0 || numbers.some((each) => !Number.isInteger(each) || each < least)) {
      throw new UsageError(`--${name} expects whole numbers from ${least}, not ${text}`);
    }
    return numbers;
  };
  return {
    nodes: wholes('nodes', values.nodes, table ? TABLE_NODES : [1_000], 0),
    beatSeconds: number('beat', values.beat, 10, 1),
    billing,
    door,
    relayMachines: wholes('relay', values.relay, [0], 0)[0]!,
    watchers: number('watchers', values.watchers, 0, 0),
    abandonedWatchesPerDay: number('abandoned-watches', values['abandoned-watches'], 10, 0),
    failuresPerNode: number('failures', values.failures, 1, 0),
    connectionsPerNodeDay: number('connections', values.connections, 24, 0),
    podsPerNode: number('pods-per-node', values['pods-per-node'], 0, 0),
    zones: number('zones', values.zones, 3, 0),
    profiles: values.profiles,
    mix: values.mix === undefined ? undefined : mixOf(values.mix),
    prices: values.prices,
    from: values.from,
    save: values.save,
    fleets: wholes('fleets', values.fleets, [50, 200], 1),
    minutes: wholes('minutes', values.minutes, [1], 1)[0]!,
    idleMinutes: wholes('idle-minutes', values['idle-minutes'], [1], 1)[0]!,
    table,
    json: values.json ?? false,
  };
}

function mixOf(text: string): ReadonlyMap<string, number> {
  const parts = text.split(',').map((part) => part.split('=', 2));
  const mix = new Map(parts.map(([name = '', share = '']) => [name, Number(share)]));
  const sum = [...mix.values()].reduce((all, share) => all + share, 0);
  if ([...mix.values()].some((share) => !(share >= 0)) || Math.abs(sum - 1) > 0.001)
    throw new UsageError(`--mix expects NAME=SHARE,… with shares that add up to 1, not ${text}`);
  return mix;
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { ...flag, short: 'h' },
        nodes: text,
        beat: text,
        billing: text,
        door: text,
        relay: text,
        watchers: text,
        'abandoned-watches': text,
        failures: text,
        connections: text,
        'pods-per-node': text,
        zones: text,
        profiles: text,
        mix: text,
        prices: text,
        from: text,
        save: text,
        fleets: text,
        minutes: text,
        'idle-minutes': text,
        table: flag,
        json: flag,
      },
    }).values;
  } catch (cause) {
    const [firstSentence] = (cause as Error).message.split(/\. |\n/);
    throw new UsageError(`${firstSentence} (--help lists the options)`, { cause });
  }
}
