import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { examine } from './check.ts';
import { WORD_LIST } from './word-list.ts';

const wordsIn = (path: string, source: string): readonly string[] =>
  examine(path, source).findings.map(({ line, found }) => `${line}: ${found}`);

/** One sentence for each row of the word list, in its order. */
const PLANTED = [
  'the API is told of it',
  'a node that we hear',
  'it listens to the bus',
  'gives a token',
  'the name given',
  'takes the lock',
  'handed to the next',
  'then the pod goes',
  'the node is gone',
  'the object is no more',
  'the process has ended',
  'an ended pod',
  'a node that came back',
  'the Region is back',
  'silent for 45 s, allowed are 40 s',
  "by the limiter's leave",
  'in doubt of itself',
  'nobody is evicted',
  'a node is judged',
  'dealt with later',
  'a zone whose nodes beat',
  'reckoned in seconds',
  'held up by a queue',
  'the lock is let go',
  'made good by a sweep',
  'the object as it is now',
  'a sweep mends it',
  'one item a node',
  'a turn of the gate',
  'the wrong room',
];

describe('the word list', () => {
  it('has a planted sentence for each of its rows, and each row finds its own', () => {
    expect(PLANTED).toHaveLength(WORD_LIST.length);
    for (const [row, sentence] of PLANTED.entries()) {
      const { pattern } = WORD_LIST[row]!;
      expect(sentence).toMatch(new RegExp(pattern, 'i'));
      expect(wordsIn('a.md', sentence), sentence).not.toEqual([]);
    }
  });

  it.each([
    'the server listens on port 8080',
    'the taint takes effect, and the pass takes 5 s',
    'it gives up after 5 attempts',
    'the API answers 410 Gone',
    'for a given name, no more than two',
    'there is room for two pods',
    'how long the start took, and a call takes some milliseconds',
    'law L1 a node with heartbeats is not marked',
    'units per node, calls per hour',
    'a queue passes messages through',
  ])('spares the technical sense: %s', (sentence) => {
    expect(wordsIn('a.md', sentence)).toEqual([]);
  });

  it('spares texts of upstream that are repeated word for word', () => {
    expect(wordsIn('a.ts', "const why = 'computed 5 from the given PriorityClass name';")).toEqual([]);
  });
});

describe('the prose of a TypeScript file', () => {
  it('is its comments and its sentences in quotes, each finding with its line', () => {
    const source = [
      '// told in a comment',
      '/** The node',
      ' * is gone. */',
      "const why = 'the pod goes';",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a template literal as source text
      'const text = `tells ${told(`nobody saw ${name}`)} of whom`;',
    ].join('\n');
    expect(wordsIn('a.ts', source)).toEqual(['1: told', '3: gone', '4: goes', '5: tells', '5: nobody', '5: whom']);
  });

  it('finds a phrase over two lines of a comment', () => {
    expect(wordsIn('a.ts', '/**\n * one item a\n * node\n */\n// that came\n// back')).toEqual([
      '2: one item a node',
      '5: came back',
    ]);
  });

  it('is neither code, nor a key, nor a path, nor what a comment quotes as code', () => {
    const source = [
      "import { told } from './told.ts';",
      "const gone = kind === 'gone' ? told / 2 : x['goes'] / 1;",
      '// `told` is a function',
      'const slash = /["\'`]told/.test(x);',
      "const after = 'the pod goes';",
    ].join('\n');
    expect(wordsIn('a.ts', source)).toEqual(['5: goes']);
  });
});

describe('the prose of a Markdown file', () => {
  it('is all but fenced blocks, inline code and the addresses of links', () => {
    const source = 'It tells\n```\ntold told\n```\nthe `told` [page](told.md) of whom\n';
    expect(wordsIn('a.md', source)).toEqual(['1: tells', '5: whom']);
  });
});

it('finds comments that are too long for a line, and no code', () => {
  const text = 'word '.repeat(24);
  const source = [`// ${text}`, `/** ${text}*/`, ` * ${text.slice(0, 117)}`, `const x = '${text}';`].join('\n');
  expect(examine('a.ts', source).findings.map(({ line }) => line)).toEqual([1, 2]);
});

it('counts the lines it examined', () => {
  expect(examine('a.ts', '// one\nconst x = 1;\n\n/*\n * two\n */\n').linesExamined).toBe(2);
});

it('examines the prose of the whole tree and finds none of the words', () => {
  const program = fileURLToPath(new URL('check.ts', import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [program], { encoding: 'utf8', timeout: 60_000 });
  const [, lines, files] = /^wording: (\d+) lines of prose in (\d+) files/m.exec(stdout) ?? [];
  expect(Number(lines)).toBeGreaterThan(10_000);
  expect(Number(files)).toBeGreaterThan(500);
  expect(status).toBe(0);
});
