/** What the cluster costs while it runs. */
import { h, type JSX } from 'preact';
import { beatsByProfile, costItems, intervalsText, pageDollarsPerDay } from '../model/running-cost.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Table } from './elements.ts';

/** That of the Nodes; Nodes and Pods hold another one. */
const WATCHES = 1;

const dollars = (amount: number): string => `$${amount.toFixed(2)}`;

export function CostView({ view }: { readonly view: ClusterView }): JSX.Element {
  const heartbeats = view.status?.heartbeats;
  const beats = beatsByProfile(view.nodes.values(), heartbeats);
  const items = costItems(beats);
  const sum = items.reduce((total, { dollarsPerDay }) => total + dollarsPerDay, 0);
  return h(
    'section',
    { 'aria-labelledby': 'cost-title' },
    h('h2', { id: 'cost-title' }, 'Cost'),
    h('p', null, h('strong', null, `${dollars(sum)} per day`), ` for ${view.nodes.size} nodes, estimated.`),
    h(Table, {
      caption: 'Cost per day',
      columns: ['Item', 'Per day'],
      rows: items.map(({ item, dollarsPerDay }) => [item, dollars(dollarsPerDay)]),
      empty: '',
    }),
    h('p', null, `This page adds ${dollars(pageDollarsPerDay(WATCHES))} per day while it is open: one held watch.`),
    h(
      'p',
      { class: 'note' },
      'List prices on demand, with heartbeats through the HTTP API. ',
      `${intervalsText(beats, heartbeats !== undefined)} Kubelets keep an interval of their own. `,
      'Relays and the URL of function heartbeat cost less: npm run cost counts them. ',
      'Not counted: the other functions, pods, other clients, ',
      'logs, metrics, alarms, storage and outgoing data. ',
      'Local mode costs nothing: the figures are those of an account with as many nodes.',
    ),
  );
}
