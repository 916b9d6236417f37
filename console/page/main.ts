/** The page: a header and one of its views, chosen by the fragment of the address. */
import { h, type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Address, addressOf, jumpTarget, VIEWS } from '../model/address.ts';
import { pageHealthOf, SIGN_IN } from '../model/page-health.ts';
import { type ClusterFeed, type ClusterView, messageOf, startClusterFeed } from './cluster-feed.ts';
import { CostView } from './cost-view.ts';
import { DecisionsView } from './decisions-view.ts';
import { DetectorView } from './detector-view.ts';
import { useNowMs } from './elements.ts';
import { Header } from './header.ts';
import { KeysHelp, useKeys } from './keys.ts';
import { NodeView } from './node-view.ts';
import { NodesView } from './nodes-view.ts';
import { NowView } from './now-view.ts';
import { PodView } from './pod-view.ts';
import { PodsView } from './pods-view.ts';
import { RequestError, signIn } from './requests.ts';
import { useAddress } from './use-address.ts';
import { WorkloadsView, WorkloadView } from './workloads-view.ts';

function Page({ feed }: { readonly feed: ClusterFeed }): JSX.Element {
  const [, setVersion] = useState(feed.version());
  useEffect(() => feed.subscribe(() => setVersion(feed.version())), [feed]);
  const view = feed.view();
  const address = useAddress();
  const { route, names } = address;
  useEffect(() => scrollTo(0, 0), [route, names.join('/')]);
  const [isHelpOpen, setIsHelpOpen] = useState(false);
  useKeys(() => setIsHelpOpen(true));
  const health = pageHealthOf(view.problems, view.goodAtMs, useNowMs(), view.isCut ? view.nodes.size : undefined);
  return h(
    'div',
    { class: health.banner === undefined ? 'page' : 'page old' },
    h('a', { class: 'skip', href: '#main', onClick: focusMain }, 'Skip to the content'),
    h(Header, { view, health }),
    h(Navigation, { route, view, openHelp: () => setIsHelpOpen(true) }),
    h('main', { id: 'main', tabIndex: -1 }, h(View, { view, address, isOld: health.banner !== undefined })),
    isHelpOpen ? h(KeysHelp, { close: () => setIsHelpOpen(false) }) : null,
  );
}

interface ViewProps {
  readonly view: ClusterView;
  readonly address: Address;
  /** The data is not current. */
  readonly isOld: boolean;
}

function View({ view, address, isOld }: ViewProps): JSX.Element {
  const { route, names } = address;
  const [first = '', second = '', third = ''] = names;
  switch (route) {
    case 'nodes':
      return h(NodesView, { view, address });
    case 'node':
      return h(NodeView, { key: first, name: first, view });
    case 'pods':
      return h(PodsView, { address });
    case 'pod':
      return h(PodView, { key: `${first}/${second}`, namespace: first, name: second });
    case 'workloads':
      return h(WorkloadsView, { address });
    case 'workload':
      return h(WorkloadView, { kind: first, namespace: second, name: third });
    case 'decisions':
      return h(DecisionsView, { view, address });
    case 'detector':
      return h(DetectorView, {});
    case 'cost':
      return h(CostView, { view });
    default:
      return h(NowView, { view, isOld });
  }
}

/** The fragment chooses the view, so the link must not change it. */
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** The view that a view of one object belongs to. */
const PARENTS: Readonly<Record<string, string>> = { node: 'nodes', pod: 'pods', workload: 'workloads' };

interface NavigationProps {
  readonly route: string;
  readonly view: ClusterView;
  readonly openHelp: () => void;
}

function Navigation({ route, view, openHelp }: NavigationProps): JSX.Element {
  const current = PARENTS[route] ?? route;
  return h(
    'nav',
    { 'aria-label': 'Views' },
    ...VIEWS.map(([each, text]) =>
      h('a', { href: addressOf(each), 'aria-current': each === current ? 'page' : undefined }, text),
    ),
    h(Jump, { view }),
    h(
      'button',
      {
        type: 'button',
        class: 'help-button',
        onClick: openHelp,
        'aria-label': 'Keys and words',
        title: 'Keys and words (?)',
      },
      '?',
    ),
  );
}

const Jump = ({ view }: { readonly view: ClusterView }): JSX.Element =>
  h(
    'form',
    {
      role: 'search',
      onSubmit: (event: Event) => {
        event.preventDefault();
        const form = event.currentTarget as HTMLFormElement;
        const target = jumpTarget(String(new FormData(form).get('jump')), (name) => view.nodes.has(name));
        if (target === undefined) return;
        form.reset();
        (document.activeElement as HTMLElement | null)?.blur();
        location.hash = target;
      },
    },
    h('label', { for: 'jump', class: 'hidden' }, 'Jump to a node, NAMESPACE/POD or a view'),
    h('input', {
      id: 'jump',
      name: 'jump',
      'data-jump': true,
      placeholder: 'Jump to node, ns/pod, view  (:)',
      autocomplete: 'off',
      spellcheck: false,
    }),
    h('button', { type: 'submit' }, 'Open'),
  );

const root = document.getElementById('app')!;
root.replaceChildren();
try {
  await signIn();
  render(h(Page, { feed: startClusterFeed() }), root);
} catch (error) {
  const isRefused = error instanceof RequestError && error.status === 401;
  const text = isRefused
    ? `This address is that of another console, or of one that has ended. ${SIGN_IN}`
    : messageOf(error);
  render(
    h('main', { class: 'page' }, h('h1', null, 'Nodekeeper'), h('p', { class: 'banner', role: 'alert' }, text)),
    root,
  );
}
