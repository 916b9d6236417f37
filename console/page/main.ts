/** The page: a header and one of its views, chosen by the fragment of the address. */
import { h, type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pageHealthOf, SIGN_IN } from '../model/page-health.ts';
import { type ClusterFeed, messageOf, startClusterFeed } from './cluster-feed.ts';
import { CostView } from './cost-view.ts';
import { DecisionsView } from './decisions-view.ts';
import { DetectorView } from './detector-view.ts';
import { useNowMs } from './elements.ts';
import { Header } from './header.ts';
import { NodeView } from './node-view.ts';
import { NowView } from './now-view.ts';
import { PodsView } from './pods-view.ts';
import { RequestError, signIn } from './requests.ts';

const VIEWS = [
  ['#/now', 'Now'],
  ['#/decisions', 'Decisions'],
  ['#/pods', 'Pods'],
  ['#/detector', 'Detector'],
  ['#/cost', 'Cost'],
] as const;

function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = (): void => {
      setHash(location.hash);
      scrollTo(0, 0);
    };
    addEventListener('hashchange', onChange);
    // It may have changed since the first drawing.
    setHash(location.hash);
    return () => removeEventListener('hashchange', onChange);
  }, []);
  return hash;
}

function Page({ feed }: { readonly feed: ClusterFeed }): JSX.Element {
  const [, setVersion] = useState(feed.version());
  useEffect(() => feed.subscribe(() => setVersion(feed.version())), [feed]);
  const hash = useHash();
  const view = feed.view();
  const [, route = 'now', name = ''] = hash.split('/');
  const health = pageHealthOf(view.problems, view.goodAtMs, useNowMs());
  return h(
    'div',
    { class: health.banner === undefined ? 'page' : 'page old' },
    h('a', { class: 'skip', href: '#main', onClick: focusMain }, 'Skip to the content'),
    h(Header, { view, health }),
    h(Navigation, { route }),
    h(
      'main',
      { id: 'main', tabIndex: -1 },
      route === 'node'
        ? h(NodeView, { key: name, name: decodeURIComponent(name), view })
        : route === 'decisions'
          ? h(DecisionsView, { view })
          : route === 'pods'
            ? h(PodsView, null)
            : route === 'detector'
              ? h(DetectorView, null)
              : route === 'cost'
                ? h(CostView, { view })
                : h(NowView, { view }),
    ),
  );
}

/** The fragment chooses the view, so the link must not change it. */
function focusMain(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

const Navigation = ({ route }: { readonly route: string }): JSX.Element =>
  h(
    'nav',
    { 'aria-label': 'Views' },
    ...VIEWS.map(([href, text]) =>
      h('a', { href, 'aria-current': href === `#/${route || 'now'}` ? 'page' : undefined }, text),
    ),
    h(FindNode, null),
  );

const FindNode = (): JSX.Element =>
  h(
    'form',
    {
      role: 'search',
      onSubmit: (event: Event) => {
        event.preventDefault();
        const name = String(new FormData(event.currentTarget as HTMLFormElement).get('node')).trim();
        if (name !== '') location.hash = `#/node/${encodeURIComponent(name)}`;
      },
    },
    h('label', { for: 'find-node', class: 'hidden' }, 'Name of a node'),
    h('input', { id: 'find-node', name: 'node', placeholder: 'Name of a node', autocomplete: 'off' }),
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
