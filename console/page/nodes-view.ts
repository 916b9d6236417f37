/** All nodes as a table: filter, order, and what their pods request. */
import { h, type JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { type Address, addressOf } from '../model/address.ts';
import { countOf } from '../model/counts.ts';
import {
  allocatedByNode,
  cpuText,
  flagsOf,
  memoryText,
  NODE_COLUMNS,
  type NodeRow,
  nodeRowsOf,
  shareOf,
} from '../model/node-rows.ts';
import { ordered } from '../model/rows.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Age, exactTime, Failure, nodeLink, useNowMs } from './elements.ts';
import { useHeartbeats } from './heartbeats.ts';
import { NodesActions } from './nodes-actions.ts';
import { usePods } from './pods-feed.ts';
import { setQuery } from './use-address.ts';
import { FilterInput, VirtualTable } from './virtual-table.ts';

interface NodesProps {
  readonly view: ClusterView;
  readonly address: Address;
}

export function NodesView({ view, address }: NodesProps): JSX.Element {
  const nowMs = useNowMs();
  const heartbeats = useHeartbeats(view.nodes.size);
  const { pods, isListed, failure, version } = usePods();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const filter = address.query.get('q') ?? '';
  const sort = address.query.get('sort') ?? '';
  const allocated = useMemo(() => (isListed ? allocatedByNode(pods.values()) : undefined), [version, isListed]);
  const { renewedAtMs, readAtMs: heartbeatsReadAtMs } = heartbeats;
  const rows = ordered(
    nodeRowsOf({
      nodes: view.nodes.values(),
      status: view.status,
      renewedAtMs,
      heartbeatsReadAtMs,
      allocated,
      filter,
      nowMs,
    }),
    NODE_COLUMNS,
    sort,
  );
  const toggle = ({ cell: { name } }: NodeRow): void => {
    const next = new Set(selected);
    if (!next.delete(name)) next.add(name);
    setSelected(next);
  };
  return h(
    'section',
    { 'aria-labelledby': 'nodes-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h2', { id: 'nodes-title' }, 'Nodes'),
      h(
        'p',
        { role: 'status', class: 'note' },
        filter === '' ? countOf(rows.length, 'node') : `${rows.length} of ${countOf(view.nodes.size, 'node')}`,
      ),
      h(FilterInput, {
        label: 'Filter of the nodes',
        placeholder: 'text or label=value  (/)',
        value: filter,
        set: (q) => setQuery(address, { q }),
      }),
    ),
    h(Failure, { message: heartbeats.failure === undefined ? undefined : `Heartbeats: ${heartbeats.failure}` }),
    h(Failure, { message: failure === undefined ? undefined : `Pods: ${failure}` }),
    h(NodesActions, {
      selected: [...selected].filter((name) => view.nodes.has(name)),
      readOnly: view.readOnly,
      clear: () => setSelected(new Set()),
    }),
    h(VirtualTable<NodeRow>, {
      label: 'Nodes',
      columns: NODE_COLUMNS,
      rows,
      keyOf: ({ cell }) => cell.name,
      cells: (row) => cellsOf(row, renewedAtMs(row.cell.name), selected.has(row.cell.name), () => toggle(row)),
      open: ({ cell }) => {
        location.hash = addressOf('node', cell.name);
      },
      sort,
      setSort: (next) => setQuery(address, { sort: next }),
      empty: view.isListed ? 'No node matches.' : 'The nodes are being read…',
      selected,
      toggle,
    }),
    h(
      'p',
      { class: 'note keys' },
      'j k move · Enter opens · x selects · / filters · : jumps · ? all keys · click on a title orders',
    ),
  );
}

function cellsOf(
  { cell, silentMs, graceShare, allocated }: NodeRow,
  renewedMs: number | undefined,
  isSelected: boolean,
  toggle: () => void,
) {
  const { name, status, zone, allocatable, createdAtMs, version, taints } = cell;
  const flags = flagsOf(cell);
  return [
    h(
      'span',
      null,
      h('input', {
        type: 'checkbox',
        checked: isSelected,
        tabIndex: -1,
        'aria-label': `Select ${name}`,
        onChange: toggle,
      }),
      nodeLink(name),
    ),
    h(
      'span',
      { class: status === 'Ready' ? '' : 'worse', title: [status, ...flags].join(', ') },
      status,
      flags.length === 0 ? '' : ` (${flags.join(', ')})`,
    ),
    silentMs === undefined
      ? ''
      : h(Bar, {
          share: graceShare ?? 0,
          text: formatAge(silentMs),
          title: renewedMs === undefined ? '' : `Last heartbeat ${exactTime(renewedMs)}`,
        }),
    zone,
    allocated === undefined ? '…' : String(allocated.pods),
    allocated === undefined
      ? '…'
      : h(Bar, {
          share: shareOf(allocated.cpu, allocatable.cpu),
          text: cpuText(allocated.cpu, allocatable.cpu),
          title: 'Cores requested by its pods, of those that pods may request',
        }),
    allocated === undefined
      ? '…'
      : h(Bar, {
          share: shareOf(allocated.memory, allocatable.memory),
          text: memoryText(allocated.memory, allocatable.memory),
          title: 'Memory requested by its pods, of what pods may request',
        }),
    createdAtMs === undefined ? '' : h(Age, { sinceMs: createdAtMs }),
    version,
    taints.length === 0 ? '' : h('span', { title: taints.join('\n') }, String(taints.length)),
  ];
}

/** A text over a bar from 0 to 1. */
const Bar = ({
  share,
  text,
  title,
}: {
  readonly share: number;
  readonly text: string;
  readonly title: string;
}): JSX.Element =>
  h(
    'span',
    { class: `bar${share >= 0.9 ? ' full' : share >= 0.5 ? ' half' : ''}`, title },
    h('span', { class: 'bar-fill', style: { width: `${Math.round(100 * share)}%` } }),
    h('span', { class: 'bar-text' }, text),
  );
