import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { KUBERNETES_MINOR, KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { differingFiles, generatedFiles } from './files.ts';

const META = `package v1

type OwnerReference struct {
	Name string \`json:"name" protobuf:"bytes,3,opt,name=name"\`
}

type ObjectMeta struct {
	Name string \`json:"name,omitempty" protobuf:"bytes,1,opt,name=name"\`
	OwnerReferences []OwnerReference \`json:"ownerReferences,omitempty" protobuf:"bytes,13,rep,name=ownerReferences"\`
}
`;
const CORE = `package v1

// +enum
type Hue string

type Flag struct {
	metav1.TypeMeta \`json:",inline"\`
	metav1.ObjectMeta \`json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"\`
	Hues []Hue \`json:"hues,omitempty" protobuf:"bytes,2,rep,name=hues"\`
	Raised *metav1.Time \`json:"raised,omitempty" protobuf:"bytes,3,opt,name=raised"\`
	Hidden string \`json:"-"\`
}
`;

const sources = (core: string, goMod = 'require (\n\tk8s.io/apimachinery v0.7.2\n)\n'): ReadonlyMap<string, string> =>
  new Map([
    ['api/go.mod', goMod],
    ['api/core/v1/types.go', core],
    ['apimachinery/pkg/apis/meta/v1/types.go', META],
  ]);

const filesOf = (core: string, goMod?: string): ReadonlyMap<string, string> => {
  const texts = sources(core, goMod);
  return generatedFiles((path) => texts.get(path) ?? '', { 'core/v1': ['Flag'] });
};

it('writes numbers, names and types of the fields, and the release of the sources', () => {
  const files = filesOf(CORE);
  expect(files.get('shared/kinds/generated/protobuf-messages.ts')).toContain(
    'core/v1.Flag: 1 metadata meta/v1.ObjectMeta, 2 hues *string, 3 raised time\n',
  );
  expect(files.get('shared/kinds/generated/lease-messages.ts')).toContain('meta/v1.ObjectMeta: 1 name string,');
  expect(files.get('shared/kinds/generated/version.ts')).toContain("KUBERNETES_VERSION = 'v1.7.2'");
});

it('names the files that differ from the sources', () => {
  const written = filesOf(CORE);
  const read = (path: string) => written.get(path);
  expect(differingFiles(filesOf(CORE), read)).toEqual([]);
  expect(differingFiles(filesOf(CORE.replace('bytes,3', 'bytes,4')), read)).toEqual([
    'shared/kinds/generated/protobuf-messages.ts',
  ]);
  expect(differingFiles(filesOf(CORE), () => undefined)).toHaveLength(written.size);
});

it('refuses sources between releases, and a kind that they lack', () => {
  expect(() => filesOf(CORE, 'k8s.io/apimachinery v0.0.0-20260101000000-abcdef012345')).toThrow(/no release/);
  expect(() => filesOf('package v1')).toThrow('api/core/v1/types.go has no struct Flag');
});

it.each([
  ['docs/kubectl.md', `version 1.${KUBERNETES_MINOR}`],
  ['docs/clients.md', `Kubernetes 1.${KUBERNETES_MINOR}`],
  ['CHANGELOG.md', `The API of Kubernetes 1.${KUBERNETES_MINOR} `],
  ['docs/agent.md', `API ${KUBERNETES_VERSION}-nodekeeper`],
])('%s names the served version', (page, words) => {
  expect(readFileSync(page, 'utf8')).toContain(words);
});
