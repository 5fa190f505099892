"""Whether a text reads like one language or another, by its script and its commonest words."""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType

from nmt.data.scripts import SCRIPTS, script_of

_WORD = re.compile(r"[^\W\d_]+")

COMMON_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "cs": """a aby ale ani asi až byl byla bylo být co do ho i ja já jak jako je jeho
                jejich jen ještě jsem jsou kde když který která mezi mi mu na ne nebo není od
                pod podle po pro proto před při s se si tak také tím to tom už v ve však z za
                ze že žena""",
            "da": """af at blev da de den der det dig du efter eller en er et for fra ham han hun
                har havde hvad hvis ikke i jeg kan kun man med men mig min når nogle nu og
                også om på sig skal som til ud under var vi vil ville være""",
            "de": """aber als am an auch auf aus bei bin bis da das dass dem den der des die du
                durch ein eine einem einen einer er es für haben hat ich ihr im in ist ja kein
                man mit nach nicht noch nur oder sein sich sie sind so über um und vom von vor
                war was wenn wie wir wird wurde zu zum zur""",
            "en": """a about after an and are as at be been but by can could did do for from had
                has have he her his i if in into is it its me my not of on or our over she so
                some than that the their them there they this to was we were what when which
                who will with would you your""",
            "es": """a al como con cuando de del desde donde el él ella en entre era es esta está
                este esto fue ha había hasta hay la las lo los más me mi muy no o para pero
                por porque que qué se ser si sin sobre son su sus también todo un una y ya yo""",
            "et": """aga ei ega et ja ka kas kes kui kuid kus ma me mida mis mitte mu nad ning nii
                oli olid on ta tema see seda selle siis sa välja või üks""",
            "fi": """ei eivät että hän he hänen ja jo joka jos kuin kun me minä mitä mukaan mutta
                myös ne niin nyt oli olen on ovat se sekä sen sitä tai tämä vain voi""",
            "fr": """à alors au aux avec ce cette comme dans de des du elle en est et être il ils
                je la le les leur lui mais me même mon ne nous on ou où par pas plus pour qu
                que qui sa sans se ses son sont sur tout un une vous""",
            "hu": """a az azt csak de egy el ez ezt és ha hogy is kell ki lehet még meg mert mint
                mi most nagy ne nem ő pedig s sem szerint után vagy van volt""",
            "it": """a ai al alla anche che chi ci come con da dal dalla dei del della delle di è e
                ed era essere gli ha ho i il in io la le lei lo loro ma mi nel nella non o per
                più quando questo se si sono su sua suo tra un una uno""",
            "lt": """aš ar bet buvo bus dėl iki ir iš ji jis jo jų ją jei kad kai kaip kas kur ne
                nėra nuo o per po prie su tai taip tik už yra į""",
            "lv": """ar arī bet bija es gan ir jau ka kā kas ko kur lai līdz man mēs nav ne no pa
                par pēc pie tas tā tikai to tu un uz vai viņš viņa""",
            "nl": """aan al als bij dan dat de deze die dit door een en er ga haar had heb heeft
                het hij hun ik in is je kan maar me meer met mijn naar niet nog nu of om ook
                op over te tot uit van voor was wat we werd ze zich zijn zo""",
            "no": """av at bare ble da de deg den der det du eller en er et etter for fra ham han
                hun har hva hvis ikke i jeg kan man med meg men min når nå noen og også om på
                seg skal som til under ut var vi vil være""",
            "pl": """a ale być był była było co czy dla do go i ich ja jak jako je jego jej jest
                jestem już kiedy która który lub ma mi mnie może na nad nie od oraz po pod
                przed przez przy się są ta tak tego ten to tylko tym w we z za ze że""",
            "pt": """a à ao aos as até com como da das de dele do dos e é ela ele em era essa esta
                este eu foi há isso já lhe mais mas me meu muito na não nas no nos o os ou
                para pela pelo por quando que se sem ser seu sua são também tem um uma você""",
            "ro": """a ai al am ar are au ca că când care ce cea cel cu cum da de decât din dar
                după e ea ei el era este eu fi fost în îi își la lui mai mea ne nu o pe pentru
                prin sa sau se și sunt un unei unui""",
            "ru": """а без был была были было в во все вы где для до его ее если еще же за и из или
                их к как ко когда кто мне мы на не нет но о об он она они от по при с себя со
                так также то только ты у уже что чтобы это этот я""",
            "sk": """a aby ako ale alebo až bol bola bolo byť čo do ho i ich ja jeho jej je keď
                ktorá ktorý ktoré len ma medzi mi na nie od po pod podľa pre pred pri s sa si
                som sú tak tiež to už v vo však z za zo že""",
            "sv": """alla att av bara blev då de den det dig du efter eller en er ett för från han
                hade har hon i icke inte jag kan man med men mig min mot mycket nu när och
                också om på sedan sig sin ska skulle som till under upp ut var vad vi vid vill
                är""",
            "tr": """ama artık bana bir biz bu bunu çok da daha de değil diye en gibi göre hem her
                için ile ise kadar ki mi mı ne o olan olarak oldu olduğu onu onun sen sonra şu
                var ve veya ya yok""",
            "uk": """а але без був була було в вже від він вона вони все де для до є її його й за з
                зі і із їх їхній коли ми мене на не ні о під по про при та так також тільки ти
                то у хто це цей чи що щоб я як який""",
        }.items()
    }
)
"""Words that no long text of a language does without, by its ISO 639-1 code."""


class Vote(Enum):
    """What a pair says of the order of its columns."""

    RIGHT = "right"
    SWAPPED = "swapped"
    SILENT = "silent"


def vote(src: str, tgt: str, src_lang: str, tgt_lang: str) -> Vote:
    """Return whether the sides read like their own languages, or each like the other's.

    `vote("He is here.", "Er ist da.", "de", "en") is Vote.SWAPPED`
    """
    leans = (_lean(src, src_lang, tgt_lang), _lean(tgt, tgt_lang, src_lang))
    if min(leans) >= 0 < max(leans):
        return Vote.RIGHT
    return Vote.SWAPPED if min(leans) < 0 >= max(leans) else Vote.SILENT


def foreign_script(text: str, language: str) -> str:
    """Return the script of most letters if the language is not written in it, else ""."""
    counts = script_of(text)
    if not counts or language not in SCRIPTS:
        return ""
    script = max(counts, key=counts.__getitem__)
    is_most = 2 * counts[script] > sum(counts.values())
    return script if is_most and script not in SCRIPTS[language] else ""


def _lean(text: str, own: str, other: str) -> int:
    """Return by how much a text is more of one language than of the other; 0: it does not tell."""
    if own in SCRIPTS and other in SCRIPTS and SCRIPTS[own] != SCRIPTS[other]:
        counts = script_of(text)
        return _difference(SCRIPTS[own], SCRIPTS[other], counts.items())
    if own in COMMON_WORDS and other in COMMON_WORDS:
        words = _WORD.findall(text.lower())
        return _difference(COMMON_WORDS[own], COMMON_WORDS[other], ((word, 1) for word in words))
    return 0


def _difference(
    own: frozenset[str], other: frozenset[str], counts: Iterable[tuple[str, int]]
) -> int:
    return sum(((name in own) - (name in other)) * count for name, count in counts)
