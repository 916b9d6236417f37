/** Actions on the selected nodes. A dry run says first what each would do. */
import { h, type JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { countOf } from '../model/counts.ts';
import { messageOf } from './cluster-feed.ts';
import { FormDialog } from './node-actions.ts';
import { postAction } from './requests.ts';

/** One dialog changes so many nodes. */
const NODES_MAX = 50;
const SILENCE_SECONDS = 7_200;

const ACTIONS = [
  ['cordon', 'Cordon…', 'No new pod is scheduled to them.', {}],
  ['uncordon', 'Uncordon…', 'New pods can be scheduled to them.', {}],
  [
    'drain',
    'Drain…',
    'They are cordoned, and their pods are evicted. Budgets and pods without a controller are respected.',
    {},
  ],
  [
    'announceSilence',
    'Announce silence of 2 h…',
    'They are not marked, and their pods not evicted, for two hours.',
    { seconds: SILENCE_SECONDS, reason: 'announced on the page' },
  ],
] as const;

type Action = (typeof ACTIONS)[number];

interface ActionsProps {
  readonly selected: readonly string[];
  /** Why the user may not write; undefined when it may. */
  readonly readOnly: string | undefined;
  readonly clear: () => void;
}

export function NodesActions({ selected, readOnly, clear }: ActionsProps): JSX.Element | null {
  const [action, setAction] = useState<Action | undefined>(undefined);
  if (selected.length === 0) return null;
  return h(
    'div',
    { class: 'actions', role: 'group', 'aria-label': 'Actions on the selected nodes' },
    h('strong', null, `${countOf(selected.length, 'node')} selected`),
    ...ACTIONS.map((each) =>
      h(
        'button',
        {
          type: 'button',
          key: each[0],
          disabled: readOnly !== undefined,
          title: readOnly,
          onClick: () => setAction(each),
        },
        each[1],
      ),
    ),
    h('button', { type: 'button', onClick: clear }, 'Clear'),
    action === undefined
      ? null
      : h(ActionDialog, { action, nodes: selected.slice(0, NODES_MAX), close: () => setAction(undefined) }),
  );
}

interface DialogProps {
  readonly action: Action;
  readonly nodes: readonly string[];
  readonly close: () => void;
}

interface Result {
  readonly node: string;
  readonly text: string;
  readonly isRefused: boolean;
}

function ActionDialog({ action: [name, title, text, more], nodes, close }: DialogProps): JSX.Element {
  const [results, setResults] = useState<readonly Result[]>([]);
  const [step, setStep] = useState<'trying' | 'tried' | 'running' | 'done'>('trying');
  const run = async (isDryRun: boolean, among: readonly string[]): Promise<void> => {
    const found: Result[] = [];
    for (const node of among) {
      found.push(
        await resultOf(node, { action: name, node, ...more, ...(isDryRun ? { dryRun: true } : {}) }, isDryRun),
      );
      setResults([...found]);
    }
    setStep(isDryRun ? 'tried' : 'done');
  };
  useEffect(() => void run(true, nodes), []);
  const accepted = results.filter(({ isRefused }) => !isRefused).map(({ node }) => node);
  const verb = title.replace('…', '');
  return h(
    FormDialog,
    {
      title: `${verb}: ${countOf(nodes.length, 'node')}`,
      text,
      confirm: { disabled: step !== 'tried' || accepted.length === 0, class: name === 'drain' ? 'danger' : '' },
      confirmText: step === 'done' ? 'Done' : `${verb} ${countOf(accepted.length, 'node')}`,
      close,
      onSubmit() {
        setStep('running');
        setResults([]);
        void run(false, accepted);
      },
    },
    h('p', { role: 'status' }, STEPS[step]),
    h(
      'ul',
      { class: 'results' },
      ...results.map(({ node, text: outcome, isRefused }) =>
        h('li', { key: node, class: isRefused ? 'worse' : '' }, `${node}: ${outcome}`),
      ),
    ),
  );
}

const STEPS = {
  trying: 'Dry run…',
  tried: 'Dry run: nothing has changed yet.',
  running: 'Running…',
  done: 'Done.',
} as const;

async function resultOf(node: string, body: object, isDryRun: boolean): Promise<Result> {
  try {
    const { evicted, refused = [] } = await postAction<{ evicted?: number; refused?: readonly string[] }>(body);
    const drained =
      evicted === undefined
        ? isDryRun
          ? 'would be changed'
          : 'changed'
        : `${countOf(evicted, 'pod')} ${isDryRun ? 'would be evicted' : 'evicted'}${refused.map((each) => `; stays: ${each}`).join('')}`;
    return { node, text: drained, isRefused: false };
  } catch (error) {
    return { node, text: messageOf(error), isRefused: true };
  }
}
