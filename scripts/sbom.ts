import type { BundledPackage } from './bundled-packages.js';

interface OwnPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/**
 * Describes the program as a CycloneDX bill of materials. `npm sbom` would find nothing: it looks at dependencies, and what is
 * bundled is none. There is no time and no serial number, so that two builds of one commit are the same.
 */
export function describeBundle(own: OwnPackage, packages: readonly BundledPackage[]): object {
  const ref = packageUrl(own);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      lifecycles: [{ phase: 'build' }],
      component: {
        'bom-ref': ref,
        type: 'application',
        name: own.name,
        version: own.version,
        licenses: [{ license: { id: own.license } }],
        purl: ref,
      },
    },
    components: packages.map(describeComponent),
    dependencies: [{ ref, dependsOn: packages.map(packageUrl) }],
  };
}

function describeComponent(bundled: BundledPackage): object {
  const [name, group] = bundled.name.split('/').toReversed();
  return {
    'bom-ref': packageUrl(bundled),
    type: 'library',
    ...(group !== undefined && { group }),
    name,
    version: bundled.version,
    ...(bundled.author !== undefined && { author: bundled.author }),
    hashes: [{ alg: 'SHA-512', content: bundled.sha512 }],
    licenses: [{ license: { id: bundled.licence } }],
    purl: packageUrl(bundled),
  };
}

function packageUrl({ name, version }: { readonly name: string; readonly version: string }): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}
