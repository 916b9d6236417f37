/** Words of the page that are not those of Kubernetes, each with one sentence that explains it. */
export const TERMS = {
  gate:
    'The safety gate closes when our own test heartbeats fail or ticks are missing: the fault is then likely ours. ' +
    'While it is closed, no node is newly marked and no pod is evicted.',
  tick: 'One pass of node-monitor, every 5 seconds unless the policy says otherwise: it evaluates every node and every zone.',
  'own heartbeats': 'Test heartbeats that the controller sends to itself the way nodes send theirs.',
  'total disruption':
    'Every zone is in full disruption. A fault of the controller is more likely than one of all machines, so all ' +
    'evictions stop.',
  'planned silence': 'Somebody announced that the node will be silent: until the end it is not marked.',
  flapping: 'The node was marked several times in a short time. New pods avoid it.',
  limiter: 'How many nodes of a zone lose their pods per second. In a disrupted zone it is slower, or stops.',
  'grace period': 'A node that sends no heartbeat for this long is marked Unknown.',
  'eviction queue': 'Nodes that wait until the limiter of their zone grants the NoExecute taint.',
  profile:
    'Interval of the heartbeats and grace period of some nodes, from the policy. Without one, the profile default applies.',
  FullDisruption: 'No node of the zone is Ready.',
  PartialDisruption: 'More than half of the nodes of the zone are not Ready.',
} as const;

export type Term = keyof typeof TERMS;

export const isTerm = (text: string): text is Term => Object.hasOwn(TERMS, text);

/** Other spellings of a term in sentences, in lower case. */
const SPELLINGS: Readonly<Record<string, Term>> = { 'safety gate': 'gate' };
const termOf = (text: string): Term | undefined =>
  (Object.keys(TERMS) as Term[]).find((term) => term.toLowerCase() === text) ?? SPELLINGS[text];

/** Not in the name of an object, such as edge-gate-1. */
const WORDS = new RegExp(
  `(?<![\\w./-])(${[...Object.keys(SPELLINGS), ...Object.keys(TERMS)]
    .sort((one, other) => other.length - one.length)
    .join('|')})(?![\\w/-]|\\.\\w)`,
  'gi',
);

/** A part of a sentence; with `term`, it is a word that has an explanation. */
export interface SentencePart {
  readonly text: string;
  readonly term?: Term;
}

/** The parts of a sentence. Each term is explained once: where it occurs first. */
export function sentenceParts(sentence: string): readonly SentencePart[] {
  const explained = new Set<Term>();
  const parts: SentencePart[] = [];
  const add = (text: string, term?: Term): void => {
    const last = parts.at(-1);
    if (text === '') return;
    if (term === undefined && last !== undefined && last.term === undefined) {
      parts[parts.length - 1] = { text: last.text + text };
    } else parts.push(term === undefined ? { text } : { text, term });
  };
  // Split keeps what the group matched: every second element is a term.
  for (const [index, text] of sentence.split(WORDS).entries()) {
    const term = index % 2 === 1 ? termOf(text.toLowerCase()) : undefined;
    const isFirst = term !== undefined && !explained.has(term);
    if (isFirst) explained.add(term);
    add(text, isFirst ? term : undefined);
  }
  return parts;
}

export const termIn = (text: string): Term | undefined =>
  sentenceParts(text).find(({ term }) => term !== undefined)?.term;
