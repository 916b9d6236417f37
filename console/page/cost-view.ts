/** What the cluster costs on AWS: the bill of `npm run cost`, for the nodes that it has. */
import { h, type JSX } from 'preact';
import { beatsByProfile, costItems, intervalsText, pageDollarsPerDay } from '../model/running-cost.ts';
import type { ClusterView } from './cluster-feed.ts';
import { Table } from './elements.ts';

/** That of the Nodes; Nodes and Pods hold another one. */
const WATCHES = 1;

const dollars = (amount: number): string => `${amount < 0 ? '-' : ''}$${Math.abs(amount).toFixed(2)}`;

export function CostView({ view }: { readonly view: ClusterView }): JSX.Element {
  const heartbeats = view.status?.heartbeats;
  const beats = beatsByProfile(view.nodes.values(), heartbeats);
  const zones = new Set([...view.nodes.values()].map(({ zone }) => zone)).size;
  const items = costItems(beats, zones);
  const sum = items.reduce((total, { dollarsPerMonth }) => total + dollarsPerMonth, 0);
  return h(
    'section',
    { 'aria-labelledby': 'cost-title' },
    h('h2', { id: 'cost-title' }, 'Cost'),
    h('p', null, h('strong', null, `${dollars(sum)} per month`), ` on AWS for ${view.nodes.size} nodes, estimated.`),
    h(Table, {
      caption: 'Cost per month',
      columns: ['Item', 'Per month'],
      rows: items.map(({ item, dollarsPerMonth }) => [item, dollars(dollarsPerMonth)]),
      empty: '',
    }),
    h('p', null, `This page adds ${dollars(pageDollarsPerDay(WATCHES))} per day while it is open: one held watch.`),
    h(
      'p',
      { class: 'note' },
      'The bill of npm run cost: list prices on demand, with heartbeats through the HTTP API. ',
      `${intervalsText(beats, heartbeats !== undefined)} Kubelets keep an interval of their own. `,
      'Relays and the URL of function heartbeat cost less. ',
      'Not counted: pods, and clients other than the nodes. ',
      'On one machine it costs nothing: the figures are those of an account with as many nodes.',
    ),
  );
}
