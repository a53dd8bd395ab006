#!/usr/bin/env bash
# Maven: a project with a parent, and with an extension that depends on any 1.x of another artifact. Maven resolves
# these before it runs any plugin, and `validate` of this packaging runs none; so no plugins are needed.
. "$(dirname "$0")/common.sh"

mirror=
[[ -z $MIRROR ]] || mirror="<mirrors><mirror><id>mirror</id><mirrorOf>central</mirrorOf><url>$MIRROR/maven/</url></mirror></mirrors>"
proxy=
if [[ -n $PROXY ]]; then
    at=${PROXY#http://}
    proxy="<proxies><proxy><active>true</active><protocol>http</protocol><host>${at%:*}</host><port>${at##*:}</port></proxy></proxies>"
fi
printf '<settings>%s%s</settings>\n' "$mirror" "$proxy" >settings.xml
parent='<parent><groupId>test.hearsay</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent>'
[[ -z ${PACKAGES:-} ]] || parent='<groupId>project</groupId><version>1.0</version>'
IFS=: read -r group artifact version <<<"${PACKAGES:-test.hearsay:alpha:1.0}"
cat >pom.xml <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  $parent
  <artifactId>project</artifactId>
  <packaging>pom</packaging>
  <build><extensions><extension>
    <groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>
  </extension></extensions></build>
</project>
END
trust=()
if [[ -z $MIRROR ]]; then
    # Java reads the CA from a key store.
    keytool -importcert -noprompt -storepass changeit -keystore trust -file "$CA" >/dev/null 2>&1
    trust=("-Djavax.net.ssl.trustStore=$HOME/trust" -Djavax.net.ssl.trustStorePassword=changeit)
fi
# -C: a wrong sum ends it.
mvn -q -B -C -s settings.xml "-Dmaven.repo.local=$HOME/repository" "-Duser.home=$HOME" "${trust[@]}" validate >&2
find repository -name '*.jar' ! -name 'plexus-utils-1.1.jar' | sort | while read -r file; do sums "$file"; done
