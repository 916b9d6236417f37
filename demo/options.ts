/** Options of the demonstration, for both homes that have it. */
import { wholeNumber } from '../shared/host/command-line.ts';
import { StartError } from '../shared/host/start-error.ts';

export interface DemoOptions {
  /** Simulated machines; 0 for none. */
  readonly nodes: number;
  readonly zones: number;
  /** How many machines are instances of the simulated EC2. */
  readonly ec2Nodes: number;
  /** Whether the console is served. */
  readonly console: boolean;
}

const ZONES_MAX = 26;
const NODES_MAX = 100_000;
const EC2_NODES = 2;

export const DEMO_OPTIONS = {
  nodes: { type: 'string' },
  zones: { type: 'string' },
  'ec2-nodes': { type: 'string' },
  fleet: { type: 'boolean' },
  console: { type: 'boolean' },
} as const;

export const DEMO_USAGE = `  --nodes N        simulated machines (6)
  --zones N        zones they are dealt to (3)
  --ec2-nodes N    machines that are instances of the simulated EC2 (2, or all when fewer)
  --no-fleet       no simulated machines
  --no-console     no console (docs/console.md)`;

export interface DemoValues {
  readonly nodes?: string;
  readonly zones?: string;
  readonly 'ec2-nodes'?: string;
  readonly fleet?: boolean;
  readonly console?: boolean;
}

/** @throws StartError with one line on what is wrong */
export function demoOptionsOf(values: DemoValues): DemoOptions {
  const nodes =
    values.fleet === false ? 0 : wholeNumber('nodes', values.nodes, { otherwise: 6, least: 0, most: NODES_MAX });
  const ec2Nodes = wholeNumber('ec2-nodes', values['ec2-nodes'], {
    otherwise: Math.min(EC2_NODES, nodes),
    least: 0,
    most: NODES_MAX,
  });
  if (ec2Nodes > nodes) throw new StartError(`--ec2-nodes ${ec2Nodes}: there are only ${nodes} machines`);
  const zones = wholeNumber('zones', values.zones, { otherwise: 3, least: 1, most: ZONES_MAX });
  return { nodes, zones, ec2Nodes, console: values.console ?? true };
}
