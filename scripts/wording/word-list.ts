/** One row of the word list: what a text must not say, and what a Kubernetes or AWS engineer would write instead. */
export interface Wording {
  /** Matched without regard to case unless `isCaseSensitive`. A space matches any white space, line breaks included. */
  readonly pattern: string;
  readonly write: string;
  readonly isCaseSensitive?: true;
}

const LIFETIME = 'terminates, is deleted, no longer exists';
const TRANSFER = 'return, accept, assign, acquire, pass';
const COUNTED =
  'units?|calls?|requests?|beats?|writes?|reads?|items?|events?|lines?|records?|invocations?|messages?|pods?|nodes?|evictions?';
const PERIODS =
  'node|machine|tick|beat|pass|second|minute|hour|day|week|month|year|zone|pod|call|request|shard|function';

/**
 * The words this project does not use. Each pattern aims at the unclear sense and spares the technical one: "listens on
 * a port", "takes effect", "takes 5 s", "gives up", "410 Gone" and "a given name" are standard English.
 */
export const WORD_LIST: readonly Wording[] = [
  { pattern: String.raw`\b(told|tells?|telling)\b`, write: 'log, emit, report, publish, notify' },
  { pattern: String.raw`\b(hears?|heard|hearing)\b`, write: 'receive, subscribe' },
  { pattern: String.raw`\blisten(s|ed|ing)? (to|for)\b`, write: 'receive, subscribe' },
  { pattern: String.raw`\b(gives?|gave|giving)\b(?! up\b)`, write: TRANSFER },
  { pattern: String.raw`(?<!\ba )\bgiven\b(?! (up|that)\b)`, write: TRANSFER },
  {
    // A duration may be taken, and so may a place, a precedence or a load.
    pattern:
      String.raw`(?<!\b(how long|longest|time)\b[^.]{0,60})\b(takes?|took|taken|taking)\b` +
      String.raw`(?! (effect|place|precedence|over|up to|at (most|least)|(about |some |over |under |only )?[\d·$]|` +
      '(too |a |as )?(long|few|while)|(about |some )?(an? |one |two )?((milli)?second|minute|hour|day)))',
    write: TRANSFER,
  },
  { pattern: String.raw`\b(hands|handed|handing|hand (it|them|out|on|over|back))\b`, write: TRANSFER },
  { pattern: String.raw`\bgoes\b(?! through\b)`, write: LIFETIME },
  { pattern: String.raw`\b(gone)\b`, write: LIFETIME, isCaseSensitive: true },
  { pattern: String.raw`\b(is|are|was|were) no more\b(?! than\b)`, write: LIFETIME },
  {
    pattern: String.raw`\b(process|pod|container|machine|instance|node|function)(es|s)? (that )?(has |have |had )?(ends?|ended)\b`,
    write: LIFETIME,
  },
  { pattern: String.raw`\bended (pods?|process(es)?|containers?|instances?)\b`, write: LIFETIME },
  { pattern: String.raw`\b(com(es?|ing)|came) back\b`, write: 'recovers, becomes Ready again' },
  { pattern: String.raw`\b(is|are|was|were) back\b`, write: 'recovers, becomes Ready again' },
  { pattern: String.raw`\bsilen(ce|t)\b[^.;]{0,40}\ballowed\b|\ballowed (is|are) \d`, write: 'grace period' },
  { pattern: String.raw`'s leave\b|\bleave of\b`, write: 'when the limiter grants a token' },
  {
    pattern: String.raw`\bdoubt(s|ed|ing)?\b|\b(own|its|our) ears?\b`,
    write: 'safety gate closed: our own heartbeat path or ticks are unhealthy',
  },
  { pattern: String.raw`\bnobody\b`, write: 'no node, no caller, no user: name the subject' },
  { pattern: String.raw`\b(judg(e|es|ed|ing))\b`, write: 'evaluate' },
  { pattern: String.raw`\b(dealt|deals?|dealing) with\b`, write: 'process, handle' },
  { pattern: String.raw`\b(whom|whose|so that|of which|by which)\b`, write: 'two short sentences' },
  { pattern: String.raw`\breckon(s|ed|ing)?\b`, write: 'compute' },
  { pattern: String.raw`\b(holds?|holding|held) up\b`, write: 'block' },
  { pattern: String.raw`\blet(s|ting)?( \w+)? go\b`, write: 'release' },
  { pattern: String.raw`\b(makes?|made|making) good\b`, write: 'repair' },
  {
    pattern: String.raw`\bas (it|they|he) (is|are|was|were) now\b|\bas (it|they|he) (stands?|stood)\b`,
    write: 'current state, previous state',
  },
  { pattern: String.raw`\bmend(s|ed|ing)?\b`, write: 'fix, repair' },
  {
    pattern: String.raw`(\b(one|two|three|units)|(?<![\w.,])\d([\d.,]*\d)?) ((${COUNTED}) )?an? (${PERIODS})\b`,
    write: 'per node, per tick, per second',
  },
  { pattern: String.raw`\bgate'?s? turn(s|ed)?\b|\bturns? of (the|a) gate\b`, write: 'transition' },
  {
    pattern: String.raw`\brooms\b|\b(an?|its|the|this|wrong) room\b(?! (for|on|left|to)\b)|\bhouses?\b`,
    write: 'package, folder, layer',
  },
];

/** Texts of upstream that we repeat word for word, as in messages of the Kubernetes API. White space may differ. */
export const ALLOWED_TEXTS: readonly string[] = [
  // plugin/pkg/admission/priority/admission.go
  'from the given PriorityClass name',
  'must populate information for the given metric source',
  'must populate the given metric source only',
  'may only hold up to 2 values',
];
